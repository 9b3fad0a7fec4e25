"""The conformance cases for slices find bugs: each here is planted into a worker that is right."""

from __future__ import annotations

import itertools
import re
import shutil
import sys
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from cachemark.checks.conformance import ConformanceResult, WorkerDriver, checks, find, slices
from cachemark.checks.conformance.no_cpu import Gap
from cachemark.checks.conformance.slice_driver import play_slice
from cachemark.endpoints.clients import Client, ClientSpec, registry
from cachemark.host import process
from cachemark.model.protocol import Slice, SliceDone
from tests.conftest import ROOT

pytestmark = pytest.mark.skipif(
    shutil.which("memcached") is None, reason="apt-get install memcached"
)
CASES = checks()
WORKERS = ROOT / "workers"
NO_CPU = "a caller without a cpu counts from the lead in on"
STEP_S = 0.05
# No worker reads its clock so often between two of these slices.
BETWEEN_GAPS_NS = 10**10


class Bug(msgspec.Struct, frozen=True, kw_only=True):
    """A text of a file that is replaced, and what the case says of it: a regular expression."""

    right: str
    wrong: str
    case: str
    says: str


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
        right="begun, ended = lead_in_end if now >= lead_in_end else None, start",
        wrong="begun, ended = start, start",
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
        right="for lead_in, ended_ns in callers\n",
        wrong="for lead_in, ended_ns in callers if ended_ns\n",
        case=NO_CPU,
        says="the answer to a slice without a CPU",
    ),
    "times are summed over callers": Bug(
        right="sum(elapsed) // len(elapsed) if elapsed else 0",
        wrong="sum(elapsed) + 1",
        case="a slice of lead in counts nothing",
        says="a slice that is all lead-in",
    ),
}


# The proxy holds a reply back for longer than the slice lasts, on any machine. In moved time that
# would take no time.
HELD_BACK = {"the lead in ends with a completion", "slices of an open loop"}
IN_MOVED_TIME = {bug.case for bug in (*REFERENCE.values(), *PYTHON.values())} - HELD_BACK


class Worker(NamedTuple):
    """A copy of a worker: the file that gets a bug, those that read the clock, how it starts."""

    file: Path
    clocks: tuple[Path, ...]
    command: list[str]

    def client(self) -> Client:
        return Client(id="planted", language="python", command=self.command)


def find_in(client: Client, case: str, folder: Path) -> ConformanceResult:
    """The result of a case on the client's first protocol."""
    with WorkerDriver(ClientSpec(text=client.id, client=client), folder) as driver:
        return next(iter(find(driver, case, CASES[case])))


def plant(path: Path, bug: Bug) -> None:
    """Replace the text, which must be there."""
    source = path.read_text("utf-8")
    assert bug.right in source
    path.write_text(source.replace(bug.right, bug.wrong), encoding="utf-8")


def check_found(result: ConformanceResult, bug: Bug) -> None:
    assert result.state == "failed", result
    assert re.search(bug.says, result.text), result.text


@pytest.fixture
def reference(tmp_path: Path) -> Worker:
    """A copy of the reference worker."""
    file = tmp_path / "worker.py"
    shutil.copy(WORKERS / "reference" / "worker.py", file)
    return Worker(file, (file,), [sys.executable, str(file)])


@pytest.fixture
def python(tmp_path: Path) -> Worker:
    """A copy of the Python worker, with a library."""
    built = registry(process.binary_path())["python/pymemcache"]
    if missing := built.missing():
        pytest.skip(f"{missing}: {built.setup}")
    left_out: Any = shutil.ignore_patterns(".venv*", "__pycache__")
    folder = shutil.copytree(WORKERS / "python", tmp_path / "python", ignore=left_out)
    command = [built.command[0], str(folder / "worker.py"), *built.command[2:]]
    file = folder / "slices.py"
    return Worker(file, (file, folder / "window.py"), command)


def play_in_moved_time(worker: Worker, patch: pytest.MonkeyPatch) -> None:
    """The worker reads a clock that moves when it is read. In a gap, the clock reads no time."""
    shutil.copy(Path(__file__).with_name("moved_clock.py"), worker.file.parent)
    for file in worker.clocks:
        source = file.read_text("utf-8")
        assert source.count("import time\n") == 1
        file.write_text(source.replace("import time\n", "import moved_clock as time\n"), "utf-8")
    starts_ns = itertools.count(BETWEEN_GAPS_NS, BETWEEN_GAPS_NS)

    def play_without_cpu(driver: WorkerDriver, gap: Gap) -> tuple[list[SliceDone], Slice]:
        request = gap.request(STEP_S, next(starts_ns))
        end_ns = request.start_unix_ns + round(gap.until * STEP_S * 1e9)
        written = worker.file.with_name("gap")
        written.write_text(f"{request.start_unix_ns} {end_ns}", "ascii")
        written.rename(worker.file.with_name("gap_ns"))
        return [play_slice(driver, request)], request

    patch.setattr(slices, "play_without_cpu", play_without_cpu)


def check_that_it_is_found(worker: Worker, bug: Bug, patch: pytest.MonkeyPatch) -> None:
    plant(worker.file, bug)
    if bug.case not in HELD_BACK:
        play_in_moved_time(worker, patch)
    check_found(find_in(worker.client(), bug.case, worker.file.parent), bug)


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
    found = find_in(worker.client(), case, worker.file.parent)
    assert found.state in ("passed", "not applicable"), found
