"""Servers with TLS: started by cachemark, and those that run already."""

import shutil
from pathlib import Path

import pytest

from cachemark.endpoints.probe import probe_new_server
from cachemark.endpoints.servers import (
    RunningServer,
    listening_on,
    parse_spec,
    running,
    running_unencrypted,
)
from cachemark.endpoints.servers.control_connection import Control
from cachemark.model.errors import TrialError, UsageError
from tests.endpoints.servers.raw_requests import ask

needs_memcached = pytest.mark.skipif(
    shutil.which("memcached") is None, reason="apt-get install memcached"
)
MEMCACHED = "memcached:threads=1,memory=16,tls=yes"
STARTED = [
    "embedded:memory=16m,tls=yes",
    "embedded:memory=16m,tls=yes,tls_name=cache.example",
    pytest.param(MEMCACHED, marks=needs_memcached),
    pytest.param(f"{MEMCACHED},tls_name=cache.example", marks=needs_memcached),
    pytest.param("memcached:threads=1,memory=16,tls=mutual", marks=needs_memcached),
    pytest.param(f"cluster:2:{MEMCACHED}", marks=needs_memcached),
]


def remote_of(server: RunningServer) -> str:
    """How a user names the same servers as ones that run already."""
    assert server.tls is not None
    names = {"ca": server.tls.ca, "name": server.tls.name}
    names |= {"client_cert": server.tls.client_cert, "client_key": server.tls.client_key}
    options = [f"tls_{name}={value}" for name, value in names.items() if value]
    return "remote:" + ",".join([*server.addresses, "tls=yes", *options])


@pytest.mark.parametrize("text", STARTED)
def test_a_server_with_tls_answers_only_by_tls(text: str) -> None:
    with running(parse_spec(text)) as server:
        for address in server.addresses:
            assert Control(address, tls=server.tls).version()
            with pytest.raises(TrialError) as caught:
                Control(address).version()
            assert "tls=yes" in caught.value.remedy
        with running(parse_spec(remote_of(server))) as remote:
            assert remote.tls == server.tls
            assert remote.facts.version


@pytest.mark.parametrize("text", STARTED)
def test_checks_reach_it_without_tls(text: str) -> None:
    with running_unencrypted(parse_spec(text)) as server:
        assert server.tls is None
        for address in server.addresses:
            stored = ask(address, b"set k 0 0 1\r\nx\r\n", b"\r\n")
            assert stored == b"STORED\r\n"
            # Longer than a record of TLS, in both directions.
            value = b"v" * 100_000
            long = b"set k 0 0 100000\r\n" + value + b"\r\n"
            assert ask(address, long, b"\r\n") == b"STORED\r\n"
            assert value in ask(address, b"get k\r\n", b"END\r\n")


def test_a_probe_finds_the_same_with_tls_as_without() -> None:
    results = [
        [(one.name, one.fit) for one in probe_new_server(parse_spec(text))]
        for text in ("embedded:memory=64m", "embedded:memory=64m,tls=yes")
    ]
    assert results[0] == results[1]


@needs_memcached
def test_a_certificate_that_nobody_trusts_names_the_remedy() -> None:
    with running(parse_spec(MEMCACHED)) as server:
        text = f"remote:{server.addresses[0]},tls=yes"
        with pytest.raises(TrialError) as caught, running(parse_spec(text)):
            pass
    assert "tls_ca=" in caught.value.remedy


@needs_memcached
def test_a_server_that_asks_for_certificates_names_the_options() -> None:
    with running(parse_spec("memcached:threads=1,memory=16,tls=mutual")) as server:
        text = f"remote:{server.addresses[0]},tls=yes,tls_ca={server.tls and server.tls.ca}"
        with pytest.raises(TrialError) as caught, running(parse_spec(text)):
            pass
    assert "tls_client_cert=" in caught.value.remedy


def test_other_hosts_cannot_have_its_password(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("secret\n")
    spec = parse_spec(f"cluster:2:embedded:auth=ann:{tmp_path / 'password'}")
    with pytest.raises(UsageError, match="several hosts"):
        listening_on(spec, "192.0.2.1")
