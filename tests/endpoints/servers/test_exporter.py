"""Prometheus's memcached_exporter reads the embedded server as it reads memcached."""

import os
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cachemark.endpoints.servers import parse_spec, running
from tests.conftest import ROOT
from tests.endpoints.servers.raw_requests import ask

PACKAGE = "github.com/prometheus/memcached_exporter/cmd/memcached_exporter"
needs_memcached = pytest.mark.skipif(
    shutil.which("memcached") is None, reason="apt-get install memcached"
)
pytestmark = [
    pytest.mark.skipif(shutil.which("go") is None, reason="Go 1.24 or later"),
    pytest.mark.slow("Go builds the exporter: a minute of CPU time"),
]


@pytest.fixture(scope="module")
def exporter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The exporter, of the version that tools/exporter pins."""
    program = tmp_path_factory.mktemp("exporter") / "memcached_exporter"
    subprocess.run(
        ["go", "build", "-mod=readonly", "-buildvcs=false", "-o", str(program), PACKAGE],
        cwd=ROOT / "tools" / "exporter",
        env={**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "", "CGO_ENABLED": "0"},
        check=True,
        timeout=600,
    )
    return program


@contextmanager
def exporting(program: Path, log: Path) -> Generator[str]:
    """A running exporter: its address. What it logs goes to a file."""
    options = ["--memcached.address=", "--web.listen-address=127.0.0.1:0"]
    process = subprocess.Popen([program, *options], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr
        with log.open("w") as lines:
            for line in process.stderr:
                lines.write(line)
                if listening := re.search(r'msg="?Listening on"? address=(\S+)', line):
                    break
            else:
                pytest.fail(f"it does not listen: {log.read_text()}")
        yield listening.group(1)
    finally:
        process.terminate()
        with log.open("a") as lines:
            lines.write(process.communicate()[1])


def scrape(exporter_address: str, target: str) -> dict[str, float]:
    """The exporter's figures of a server: numbers by metric and labels."""
    url = f"http://{exporter_address}/scrape?target={target}"
    with urllib.request.urlopen(url, timeout=300) as reply:
        lines = reply.read().decode().splitlines()
    pairs = [line.rsplit(" ", 1) for line in lines if line.startswith("memcached_")]
    return {name: float(value) for name, value in pairs}


def names_of(metrics: dict[str, float]) -> set[str]:
    return {re.sub(r"\{.*", "", name) for name in metrics}


def use(address: str) -> None:
    """Store an item, read it, miss it, flush it and miss it once more."""
    assert ask(address, b"set k 0 0 5\r\nvalue\r\n") == b"STORED\r\n"
    assert ask(address, b"get k\r\n", b"END\r\n") == b"VALUE k 0 5\r\nvalue\r\nEND\r\n"
    assert ask(address, b"get none\r\n", b"END\r\n") == b"END\r\n"


def test_the_exporter_scrapes_a_server_with_items(exporter: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with exporting(exporter, log) as address, running(parse_spec("embedded:memory=16m")) as server:
        target = server.addresses[0]
        assert scrape(address, target)["memcached_up"] == 1
        use(target)
        metrics = scrape(address, target)
    told = log.read_text()
    assert not re.search("level=(warn|error)", told), told
    assert metrics["memcached_up"] == 1
    assert metrics["memcached_current_items"] == 1
    assert metrics['memcached_slab_current_items{slab="1"}'] == 1
    assert metrics['memcached_commands_total{command="get",status="hit"}'] == 1
    assert metrics['memcached_commands_total{command="get",status="miss"}'] == 1
    assert metrics['memcached_slab_commands_total{command="set",slab="1",status="hit"}'] == 1
    assert metrics["memcached_limit_bytes"] == 16 << 20


@needs_memcached
def test_the_exporter_tells_what_it_tells_of_memcached(exporter: Path, tmp_path: Path) -> None:
    names = []
    for spec in ("embedded:memory=16m", "memcached:memory=16"):
        with exporting(exporter, tmp_path / "log") as address, running(parse_spec(spec)) as server:
            use(server.addresses[0])
            names.append(names_of(scrape(address, server.addresses[0])))
    embedded, memcached = names
    assert embedded >= memcached
