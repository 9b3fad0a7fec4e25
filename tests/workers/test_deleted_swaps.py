"""A cas whose key is deleted between its read and its store: refused, as the server counts it."""

import shutil
from pathlib import Path

import pytest

from cachemark.endpoints.clients import Client
from tests.builders.small_experiments import read_outcomes
from tests.cli.in_process import Inside
from tests.workers import worker_driver

pytestmark = [
    pytest.mark.skipif(shutil.which("memcached") is None, reason="apt-get install memcached"),
    pytest.mark.slow("two processes of a library disturb each other, of each library with a cas"),
]
# php/memcache is not among them: to that library the server is down after such a reply.
CLIENTS = {
    "c/libmemcached": "binary",
    "go/gomemcache": "text",
    "java/folsom": "text",
    "java/spymemcached": "binary",
    "java/xmemcached": "text",
    "native": "meta",
    "node/memcache-client": "text",
    "node/memcached": "text",
    "perl/fast": "text",
    "php/memcached": "binary",
    "python/aiomcache": "text",
    "python/bmemcached": "binary",
    "python/emcache": "text",
    "python/meta-memcache": "meta",
    "python/pylibmc": "binary",
    "python/pymemcache": "text",
    "ruby/dalli": "binary",
    "ruby/memcache-client": "text",
    "rust/async-memcached": "meta",
    "rust/memcache": "binary",
}


# Two processes on one CPU may not meet.
_TRIES = 5


@pytest.mark.parametrize("client", worker_driver.clients(CLIENTS))
def test_the_server_refused_as_many(client: Client, inside: Inside, tmp_path: Path) -> None:
    for _ in range(_TRIES):
        ended = inside(
            *("run", "--client", client.id, "--server", "memcached"),
            *("--mix", "cas=3,delete=1,set=1", "--keys", "4", "--ops", "3000", "--blocks", "1"),
            *("--set", "loads.processes=2", "--set", "noise=note", "--set", "design=trials"),
            *("--set", "timing.warmup_ms=0", "--set", f"loads.wire={CLIENTS[client.id]}"),
        )
        outcomes = read_outcomes(tmp_path)
        for outcome in outcomes:
            assert outcome.verdict == "VALID", (outcome.reasons, ended.stderr)
        done = [outcome.measure for outcome in outcomes if outcome.measure]
        if any(window.operations["cas"].not_stored for window in done):
            return
        shutil.rmtree(tmp_path / "results")
    pytest.fail("no caller disturbed another one")
