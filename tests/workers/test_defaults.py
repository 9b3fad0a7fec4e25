"""Libraries as they come: each marks the bytes that it stores in its own way."""

import shutil
from pathlib import Path

import pytest

from cachemark.checks.conformance.proxy import proxied
from cachemark.endpoints.clients import registry
from cachemark.endpoints.servers import parse_spec, running
from cachemark.host import process
from cachemark.model.protocol import Ready, RunRequest
from tests.workers import worker_driver

CLIENTS = registry(process.binary_path())
pytestmark = pytest.mark.skipif(
    shutil.which("memcached") is None, reason="apt-get install memcached"
)
# Client, wire, the flags of a value that is a string of bytes.
MARKS = [
    ("java/spymemcached", "text", 2048),
    ("java/xmemcached", "text", 2048),
    ("java/folsom", "text", 0),
    ("node/memjs", "binary", 0),
    ("node/memcached", "text", 4),
    ("node/memcache-client", "text", 8),
]


@pytest.mark.parametrize(("client", "wire", "flags"), MARKS, ids=[name for name, *_ in MARKS])
def test_bytes_have_the_librarys_own_flags(
    client: str, wire: str, flags: int, tmp_path: Path
) -> None:
    if missing := CLIENTS[client].missing():
        pytest.skip(f"{missing}: {CLIENTS[client].setup}")
    gets = ("--keys", "20", "--size", "30", "--mix", "get=1", "--ops", "100")
    tape = worker_driver.write_tape(tmp_path, *gets)
    with (
        running(parse_spec("memcached:threads=1,memory=16")) as server,
        proxied(server.addresses[0]) as proxy,
        worker_driver.started(CLIENTS[client]) as (worker, _),
    ):
        setup = worker_driver.patient(
            servers=[proxy.address], wire=wire, tape=str(tape), options={"profile": "defaults"}
        )
        assert isinstance(worker_driver.ask(worker, setup), Ready)
        assert worker_driver.play(worker, RunRequest(phase="prefill")).operations["set"].ok == 20
        assert (
            worker_driver.play(worker, RunRequest(phase="measure", ops=50)).operations["get"].hits
            == 50
        )
        assert {write.flags for write in proxy.writes} == {flags}
