"""The conformance cases for slices find bugs: each here is planted into a worker that is right."""

import itertools
import shutil
import sys
from pathlib import Path

import pytest

from cachemark.checks.conformance import WorkerDriver, slice_driver, slices
from cachemark.checks.conformance.slice_driver import Gap, play_slice
from cachemark.model.protocol import Slice, SliceDone
from tests.checks.planted import WORKERS, Bug, Worker, check_found, find_in, python_worker, replace

pytestmark = pytest.mark.skipif(
    shutil.which("memcached") is None, reason="apt-get install memcached"
)
NO_CPU = "a caller without a cpu counts from the lead in on"
STEP_S = 0.05
# No worker reads its clock so often between two of these slices.
BETWEEN_GAPS_NS = 10**10
# In moved time every slice plays, however busy the machine is: no case needs more of them.
MOST_SLICES = 40


REFERENCE = {
    "the tape begins again with each slice": Bug(
        right="start, now = self.start(request)\n        end",
        wrong="start, now = self.start(request)\n        self.played = 0\n        end",
        case="slices play on without gap or repeat",
        says="the tape has",
    ),
    "a record is lost between slices": Bug(
        right="start, now = self.start(request)\n        end",
        wrong="start, now = self.start(request)\n        self.played += 1\n        end",
        case="slices play on without gap or repeat",
        says="the tape has",
    ),
    "a slice of length 0 plays": Bug(
        right="while self.ops and now < end:",
        wrong="while self.ops and now < end + 10**8:",
        case="slices play on without gap or repeat",
        says="the answer to a slice of length 0",
    ),
    "an operation is counted twice": Bug(
        right='"ops": ops,',
        wrong='"ops": ops + 1,',
        case="slices inside a process",
        says="ops of slices",
    ),
    "lead-ins have times": Bug(
        right="timed=False",
        wrong="timed=True",
        case="slices inside a process",
        says="the lead-in has histograms",
    ),
    "lead-ins are dropped": Bug(
        right='"lead_in": lead_in.operations(timed=False)',
        wrong='"lead_in": {}',
        case="slices inside a process",
        says="lead_in_ops of slices",
    ),
    "lead-ins are counted": Bug(
        right="begun, ended, half = lead_in_end if now >= lead_in_end else None, start",
        wrong="begun, ended, half = start, start",
        case="a slice of lead in counts nothing",
        says="a slice that is all lead-in",
    ),
    "the counted part begins with an instant": Bug(
        right="                begun = now\n",
        wrong="                begun = lead_in_end\n",
        case="the lead in ends with a completion",
        says="a slice whose first reply comes after its end",
    ),
    "a caller without a CPU counts from its first completion": Bug(
        right="lead_in_end if now >= lead_in_end else None, start",
        wrong="start if lead_in_end == start else None, start",
        case=NO_CPU,
        says="lead_in_ops without a CPU in the lead-in",
    ),
    "a caller without a CPU counts until its last completion": Bug(
        right="max(ended, end)",
        wrong="max(ended, lead_in_end)",
        case=NO_CPU,
        says="the answer to a slice without a CPU",
    ),
    "the time of slices is lost": Bug(
        right="        self.elapsed_ns += elapsed_ns\n",
        wrong="        self.elapsed_ns = elapsed_ns\n",
        case="slices play on without gap or repeat",
        says="elapsed_ns of slices",
    ),
    "no first half is reported": Bug(
        right='"half_ops": half[1], "half_ns": max(0, half[0] - begun),',
        wrong="",
        case="a slice is counted in two halves",
        says="no slice has operations in both halves",
    ),
    "the first half ends with an instant": Bug(
        right="half = now, counted",
        wrong="half = (lead_in_end + end) // 2, counted",
        case="the lead in ends with a completion",
        says="the first half of",
    ),
    "the first half is longer than the counted part": Bug(
        right="max(0, half[0] - begun)",
        wrong="elapsed_ns + 1",
        case="slices inside a process",
        says="the first half of a slice",
    ),
    "wrong values are no errors": Bug(
        right='"errors": attempts - ops',
        wrong='"errors": 0',
        case="wrong values in slices are errors",
        says="nothing is counted",
    ),
    "lost connections are no errors": Bug(
        right="        results.add(kind, failed, now - began)\n",
        wrong='        if failed != "connection":\n            results.add(kind, failed, 0)\n',
        case="a server that is killed between slices",
        says="no operation failed",
    ),
    "a slice begins slices": Bug(
        right='return failure("protocol", "slice before begin_slices")',
        wrong="self.begin_slices(request)",
        case="a slice needs begin slices",
        says="the kind of error",
    ),
    "a run goes on where slices ended": Bug(
        right="results, played = Results(), 0",
        wrong='results, played = Results(), getattr(self, "played", 0)',
        case="a slice needs begin slices",
        says="",
    ),
}
PYTHON = {
    "there is no barrier": Bug(
        right="if self._quiet and len(record.codes) > first:",
        wrong="if not self._quiet:",
        case="slices without replies end with a barrier",
        says="",
    ),
    "an open loop runs on in pauses": Bug(
        right="self._origin_ns = window.start_ns - self._tape_ns",
        wrong="self._origin_ns = self._origin_ns or window.start_ns",
        case="slices of an open loop",
        says="",
    ),
    "an operation that was not due is lost": Bug(
        right="        if call is not None:\n",
        wrong="        if call is not None and not call:\n",
        case="slices of an open loop",
        says="the tape has",
    ),
    "the lead-in ends with the first completion after it": Bug(
        right="        lead_in.look(clock())\n",
        wrong="",
        case=NO_CPU,
        says="lead_in_ops without a CPU in the lead-in",
    ),
    "callers that played nothing are left out": Bug(
        right="for lead_in, ended_ns, noted in callers\n",
        wrong="for lead_in, ended_ns, noted in callers if ended_ns\n",
        case=NO_CPU,
        says="the answer to a slice without a CPU",
    ),
    "times are summed over callers": Bug(
        right="sum(caller[i] for caller in callers) // count for",
        wrong="sum(caller[i] for caller in callers) + 1 for",
        case="a slice of lead in counts nothing",
        says="a slice that is all lead-in",
    ),
}


# The proxy holds a reply back for longer than the slice lasts, on any machine. In moved time that
# would take no time.
HELD_BACK = {"the lead in ends with a completion", "slices of an open loop"}
IN_MOVED_TIME = {bug.case for bug in (*REFERENCE.values(), *PYTHON.values())} - HELD_BACK


@pytest.fixture
def reference(tmp_path: Path) -> Worker:
    """A copy of the reference worker."""
    shutil.copy(WORKERS / "reference" / "worker.py", tmp_path)
    return Worker(tmp_path, "worker.py", [sys.executable, str(tmp_path / "worker.py")])


@pytest.fixture
def python(tmp_path: Path) -> Worker:
    return python_worker(tmp_path, "slices.py")


def play_in_moved_time(worker: Worker, patch: pytest.MonkeyPatch) -> None:
    """The worker reads a clock that moves when it is read. In a gap, the clock reads no time."""
    shutil.copy(Path(__file__).with_name("moved_clock.py"), worker.folder)
    for path in {worker.folder / worker.file, *worker.folder.glob("window.py")}:
        replace(path, "import time\n", "import moved_clock as time\n")
    starts_ns = itertools.count(BETWEEN_GAPS_NS, BETWEEN_GAPS_NS)

    def play_without_cpu(driver: WorkerDriver, gap: Gap) -> tuple[list[SliceDone], Slice]:
        request = gap.request(STEP_S, next(starts_ns))
        end_ns = request.start_unix_ns + round(gap.until * STEP_S * 1e9)
        written = worker.folder / "gap"
        written.write_text(f"{request.start_unix_ns} {end_ns}", "ascii")
        written.rename(worker.folder / "gap_ns")
        return [play_slice(driver, request)], request

    patch.setattr(slices, "play_without_cpu", play_without_cpu)
    for module in (slices, slice_driver):
        patch.setattr(module, "MAX_SLICES", MOST_SLICES)


def check_that_it_is_found(worker: Worker, bug: Bug, patch: pytest.MonkeyPatch) -> None:
    if bug.case not in HELD_BACK:
        play_in_moved_time(worker, patch)
    check_found(worker, bug)


@pytest.mark.parametrize("name", REFERENCE)
def test_a_bug_of_the_reference_worker_is_found(
    reference: Worker, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_that_it_is_found(reference, REFERENCE[name], monkeypatch)


@pytest.mark.parametrize("name", PYTHON)
def test_a_bug_of_the_python_worker_is_found(
    python: Worker, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_that_it_is_found(python, PYTHON[name], monkeypatch)


@pytest.mark.parametrize("fixture", ["reference", "python"])
@pytest.mark.parametrize("case", sorted(IN_MOVED_TIME))
def test_a_clock_that_is_moved_is_no_bug(
    fixture: str, case: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker: Worker = request.getfixturevalue(fixture)
    play_in_moved_time(worker, monkeypatch)
    found = find_in(worker, case)
    assert found.state in ("passed", "not applicable"), found
