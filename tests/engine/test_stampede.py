"""A stampede against the real memcached: who refills, who waits, and who gets the old value."""

import json
import shutil
import subprocess
from typing import Any

import pytest

from cachemark.endpoints.servers import parse_spec, running
from cachemark.host.process import binary_path
from tests.cli.in_process import Inside

needs_memcached = pytest.mark.skipif(
    shutil.which("memcached") is None, reason="apt-get install memcached"
)
CALLERS = 8
# A caller that is not scheduled for most of a second would come too late for the stampede.
WORK = ("--callers", str(CALLERS), "--ttl", "2", "--expiries", "1", "--making", "900ms")


def played(approach: str) -> tuple[dict[str, Any], int]:
    """The callers' own counts, and how many sets the server has counted."""
    with running(parse_spec("memcached:threads=1,memory=16")) as server:
        command = [binary_path(), "stampede", "--server", *server.addresses, "--json", *WORK]
        ended = subprocess.run(
            [*command, "--pause", "5ms", "--only", approach], capture_output=True, check=True
        )
        (told,) = json.loads(ended.stdout)["approaches"]
        return told, server.stats().number("cmd_set") or 0


@needs_memcached
@pytest.mark.parametrize("approach", ["plain", "win", "stale"])
def test_the_server_counts_the_refills_that_callers_tell(approach: str) -> None:
    told, sets = played(approach)
    (expiry,) = told["expiries"]
    # The first set comes before the callers.
    assert sets == 1 + expiry["refills"]
    assert told["refilling"]["calls"] == expiry["refills"]
    if approach == "plain":
        assert 1 < expiry["refills"] <= CALLERS
        assert (expiry["stale"], expiry["waited"]) == (0, 0)
        return
    assert expiry["refills"] == 1
    assert expiry["stale" if approach == "stale" else "waited"] > 0
    assert told["others"]["calls"] >= expiry["stale"] + expiry["waited"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--ttl", "1"), "--ttl 1: write 2 to 86400"),
        (("--making", "9s"), "too long for --ttl 3"),
        (("--server", "udp:127.0.0.1:1"), "write host:port"),
        (("--server", "cache"), "--server cache: write HOST:PORT"),
        (("--server", "cache:99999"), "--server cache:99999: write HOST:PORT"),
        (("--size", "2M"), "at most 1000000"),
    ],
)
def test_bad_input_is_one_clear_error(words: tuple[str, str], says: str) -> None:
    command = [binary_path(), "stampede"]
    if "--server" not in words:
        command += ["--server", "127.0.0.1:1"]
    ended = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert says in ended.stderr


def test_the_help_of_cachemark_leads_to_it(inside: Inside) -> None:
    told = " ".join(inside("--help").stdout.split())
    assert "`cachemark-engine --help` has tools that need no Python, such as `stampede`" in told
