"""The conformance cases for open loops find bugs: each is planted into a worker that is right."""

import shutil
from pathlib import Path

import pytest

from tests.checks.planted import Bug, check_found, find_in, python_worker

pytestmark = pytest.mark.skipif(
    shutil.which("memcached") is None, reason="apt-get install memcached"
)
_STALL = "a stall is in the response time"
_STOP = "what a stop cuts off is unsent"
BUGS = {
    "waits are service time": Bug(
        right="        time_of(now - began)\n        lag_of",
        wrong="        time_of(now - due)\n        lag_of",
        case=_STALL,
        says="the service times of one connection are longer than the run",
    ),
    "the stall is in one response time": Bug(
        right="        lag_of(began - due)\n",
        wrong="        lag_of(0)\n",
        case=_STALL,
        says="the stall is not in the response times",
    ),
    "what waits is not counted": Bug(
        right="            record.queued += 1",
        wrong="            record.queued += 0",
        case=_STALL,
        says="queued",
    ),
    "what was never sent is lost": Bug(
        right="            record.unsent.append((op.number, now - due))\n",
        wrong="            pass\n",
        case=_STOP,
        says="unsent 0",
    ),
    "a stop does not end a run": Bug(
        right="not wait_until(due, window) or clock() >= window.drain_ns",
        wrong="not wait_until(due, window)",
        case=_STOP,
        says="unsent 0",
    ),
}


@pytest.mark.parametrize("name", BUGS)
def test_a_bug_is_found(tmp_path: Path, name: str) -> None:
    check_found(python_worker(tmp_path, "lane_threads.py"), BUGS[name])


@pytest.mark.parametrize("case", [_STALL, _STOP])
def test_the_worker_itself_has_none(tmp_path: Path, case: str) -> None:
    assert find_in(python_worker(tmp_path, "lane_threads.py"), case).state == "passed"
