"""Every key is on the server on which `capacity` places it, for the libraries' own clients."""

from __future__ import annotations

import json
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from cachemark.endpoints.capabilities import supported_wires
from cachemark.endpoints.clients import Client
from cachemark.endpoints.servers import parse_spec, running
from cachemark.host.process import binary_path
from cachemark.model.protocol import Ready, RunRequest
from tests.engine.test_record import Client as TextClient
from tests.workers import worker_driver

_SERVERS, _KEYS = 3, 300
_PLACED = (
    ("c/libmemcached", "default", "modulo"),
    ("c/libmemcached", "ketama", "libmemcached-ketama"),
    ("python/pylibmc", "default", "modulo"),
    ("php/memcached", "default", "modulo"),
    ("php/memcached", "ketama", "libmemcached-ketama"),
    ("go/gomemcache", "default", "gomemcache"),
    ("python/python-memcached", "default", "python-memcached"),
    ("perl/memcached", "default", "python-memcached"),
    ("ruby/dalli", "default", "dalli"),
    ("java/spymemcached", "ketama", "ketama"),
)


def _cases() -> list[Any]:
    slow = pytest.mark.slow("plays a further library")
    return [
        pytest.param(
            worker_driver.known()[name],
            hashing,
            ring,
            id=f"{name}-{hashing}",
            marks=[slow] if name.startswith(("java/", "php/", "perl/")) else [],
        )
        for name, hashing, ring in _PLACED
        if worker_driver.claims(name) is not None
    ]


def _keys(address: str) -> set[str]:
    dump = TextClient(address).ask("lru_crawler metadump hash", "END")
    items = [line for line in dump.splitlines() if line.startswith("key=")]
    return {unquote(line.split()[0].removeprefix("key=")) for line in items}


def _placed(ring: str, addresses: list[str], keys: set[str]) -> list[int]:
    """How many of the keys each server has, by `capacity`."""
    Path("keys.csv").write_text("op,key,size\n" + "".join(f"get,{key},10\n" for key in keys))
    Path("fleet.toml").write_text(
        f"ring = {json.dumps(ring)}\naddresses = {json.dumps(addresses)}\npeak_rate = 1\n"
        f'[[server]]\nname = "a"\nmemory = "64m"\nrate = 9\nnumber = {len(addresses)}\n'
    )
    command = [binary_path(), "trace", "fleet", "--servers", "fleet.toml", "keys.csv"]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(told)["figures"]["played"]["keys_of_server"]


@pytest.mark.parametrize(("client", "hashing", "ring"), _cases())
def test_each_key_is_where_capacity_places_it(
    client: Client, hashing: str, ring: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    work = ("--keys", str(_KEYS), "--size", "30", "--mix", "get=1", "--ops", "10")
    tape = worker_driver.write_tape(tmp_path, *work)
    with ExitStack() as stack, worker_driver.started(client) as (worker, ready):
        servers = [stack.enter_context(running(parse_spec("memcached"))) for _ in range(_SERVERS)]
        addresses = [server.addresses[0] for server in servers]
        options = {} if hashing == "default" else {"hashing": hashing}
        (wire, *_) = supported_wires(ready)
        setup = worker_driver.patient(servers=addresses, tape=str(tape), options=options, wire=wire)
        assert isinstance(worker_driver.ask(worker, setup), Ready)
        worker_driver.play(worker, RunRequest(phase="prefill"))
        held = [_keys(address) for address in addresses]
    assert sum(map(len, held)) == _KEYS
    for place, keys in enumerate(held):
        placed = _placed(ring, addresses, keys)
        assert placed == [len(keys) if at == place else 0 for at in range(_SERVERS)]


def test_libmemcached_names_no_default_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    addresses = [f"10.0.0.{number}:11211" for number in range(1, 4)]
    script = """
        $cache = new Memcached();
        $cache->setOption(Memcached::OPT_LIBKETAMA_COMPATIBLE, true);
        for ($n = 1; $n < 4; $n++) { $cache->addServer("10.0.0.$n", 11211); }
        for ($n = 0; $n < $argv[1]; $n++) {
            echo "key-$n ", $cache->getServerByKey("key-$n")["host"], "\n";
        }
    """
    if worker_driver.claims("php/memcached") is None:
        pytest.skip("php-memcached is not set up")
    ran = subprocess.run(
        ["php", "-r", script, str(_KEYS)], check=True, capture_output=True, text=True
    )
    places = dict(line.split() for line in ran.stdout.splitlines())
    assert len(places) == _KEYS
    for place, address in enumerate(addresses):
        keys = {key for key, host in places.items() if address == f"{host}:11211"}
        placed = _placed("libmemcached-ketama", addresses, keys)
        assert placed == [len(keys) if at == place else 0 for at in range(_SERVERS)]
