"""Plays cases with one client, over real sockets, again if the host was too noisy to judge one."""

import time
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase as fnmatch
from pathlib import Path

import msgspec
from msgspec.structs import replace

from cachemark.checks.fidelity import judge
from cachemark.checks.fidelity.cases import Case, CaseLoad, KnownMiss, floor_of, known_failures
from cachemark.checks.fidelity.judge import (
    CountResult,
    FidelityResult,
    JudgedState,
    PercentileResult,
    TimeFloor,
)
from cachemark.checks.fidelity.log import (
    Log,
    NsArray,
    groups_ns,
    intended_ns,
    percentile,
    responses_ns,
    services_ns,
    stalls,
    start_late_ns,
)
from cachemark.checks.fidelity.server import scripted
from cachemark.endpoints.capabilities import supported_wires
from cachemark.endpoints.clients import ClientSpec
from cachemark.endpoints.fleet import Fleet, RunMonitor
from cachemark.host.cpu_meter import run_delay_ns
from cachemark.host.engine_output import write_tape
from cachemark.host.placement import halves, usable_cpus
from cachemark.host.temporary import temporary_folder
from cachemark.model import histogram
from cachemark.model.errors import TrialError, UnsupportedError
from cachemark.model.histogram import Histogram
from cachemark.model.protocol import Done, Operation, Prepare, Ready, RunRequest
from cachemark.model.protocol_results import Groups

WIRES = ("text", "binary", "meta")
_READY_S = 60.0
_SILENCE_S = 60.0
_WARMUP_OPS = 50
# The script applies to these keys only: some libraries send reads of their own.
_KEYS = "fidelity:"
_FLOOR_WARMUP_OPS = 500


class PlayedCase(msgspec.Struct, frozen=True, kw_only=True):
    """The client's results of a window, the server's log, and the tape.

    `groups` is None if the case has none.

    `run_delay_ns` is how long the client's processes were runnable without a CPU in the window,
    `asked_ns` when the request for the window was sent, on the log's clock.
    """

    reported: Operation
    groups: Groups | None
    unsent: int
    log: Log
    tape: Path
    run_delay_ns: int
    asked_ns: int


class ClientUnderTest:
    """A client under test. Its workers are started once, and again after a failure."""

    def __init__(self, spec: ClientSpec, folder: Path) -> None:
        self.spec = spec
        self._folder = folder
        self._fleets: dict[int, Fleet] = {}
        self._ready: Ready | None = None
        self._cpus = halves(usable_cpus())

    def __enter__(self) -> "ClientUnderTest":
        return self

    def __exit__(self, *_: object) -> None:
        self.replace()

    def replace(self) -> None:
        """Stop the workers; the next use starts new ones."""
        for fleet in self._fleets.values():
            fleet.__exit__()
        self._fleets.clear()

    def wire(self) -> str:
        """The first wire protocol that client and server share; empty if there is none."""
        self._fleet(1)
        spoken = supported_wires(self._ready) if self._ready else []
        return next((wire for wire in spoken if wire in WIRES), "")

    def can(self, capability: str) -> bool:
        """Whether the client has a capability."""
        self._fleet(1)
        return self._ready is not None and capability in self._ready.capabilities

    def play(self, case: Case, wire: str) -> PlayedCase:
        """Play a case. Raises TrialError, UnsupportedError."""
        callers = case.load.callers
        processes = callers if self.spec.client.concurrency == "processes" else 1
        threads = callers if processes == 1 and self.can("threads") else 1
        fleet = self._fleet(processes)
        tape = case_tape(case, self._folder / "tape")
        watch = RunMonitor(progress=_ignore_progress, silence_timeout_s=_SILENCE_S)
        script = f'key_prefix = "{_KEYS}"\n{case.script}'
        with scripted(script, self._folder, self._cpus[0]) as server:
            request = Prepare(
                servers=[server.address],
                wire=wire,
                threads=threads,
                connections=callers // processes,
                tape=str(tape),
                timeout_ms=case.load.timeout_ms,
                options=self.spec.options,
            )
            fleet.prepare(request, _READY_S)
            fleet.run(RunRequest(phase="prefill"), watch)
            if not case.faults.lost:
                ops = _WARMUP_OPS if case.script else _FLOOR_WARMUP_OPS
                fleet.run(RunRequest(phase="warmup", ops=min(ops, case.load.expected_ops)), watch)
            server.restart_script()
            pids = [worker.pid for worker in fleet.workers]
            before, asked_ns = run_delay_ns(pids), time.monotonic_ns()
            done = fleet.run(_window(case), watch)
            waited = run_delay_ns(pids) - before
            return PlayedCase(
                reported=_reads(done),
                groups=done.groups,
                unsent=done.unsent,
                log=server.end(),
                tape=tape,
                run_delay_ns=waited,
                asked_ns=asked_ns,
            )

    def _fleet(self, count: int) -> Fleet:
        if count not in self._fleets:
            client = self.spec.client
            fleet = Fleet(client.command, count, cpus=self._cpus[1], name=client.id)
            self._fleets[count] = fleet
            self._ready = fleet.hello(_READY_S)
        return self._fleets[count]


def measure_floor(client: ClientUnderTest, case: Case, wire: str) -> TimeFloor:
    """Measure the client's times if the server replies at once. Raises TrialError."""
    played = client.play(floor_of(case.load), wire)
    measured = _histogram(played.reported.response)
    return TimeFloor(
        p50_ns=max(0, measured.percentile(50) - percentile(services_ns(played.log), 50)),
        p99_ns=measured.percentile(99),
    )


def find(client: ClientUnderTest, case: Case, wire: str) -> FidelityResult:
    """Play a case and judge it. If the case is about times, measure the floor first."""
    name = client.spec.text
    if not case.load.closed and not client.can("open_loop"):
        why = "it plays no open loop"
        return FidelityResult(client=name, case=case.name, state="not applicable", why=why)
    if case.group_answer_ms and not client.can("groups"):
        why = "it measures no times of groups"
        return FidelityResult(client=name, case=case.name, state="not applicable", why=why)
    try:
        timed = case.answer_ms or case.group_answer_ms
        floor = measure_floor(client, case, wire) if timed else None
        finding = _judged(case, floor, client.play(case, wire))
    except UnsupportedError as error:
        client.replace()
        return FidelityResult(client=name, case=case.name, state="not applicable", why=error.text)
    except TrialError as error:
        client.replace()
        return FidelityResult(
            client=name, case=case.name, state="failed", why=error.text, wire=wire
        )
    return msgspec.structs.replace(finding, client=name, wire=wire, floor=floor)


def _judged(case: Case, floor: TimeFloor | None, played: PlayedCase) -> FidelityResult:
    counted = judge.counts(played.log, played.reported)
    if played.groups:
        counted += judge.group_counts(played.log, played.reported, played.groups)
    lines: list[PercentileResult] = []
    late_ns = 0
    due = None if case.load.closed else intended_ns(played.tape)
    if due is not None:
        due_count = played.reported.attempts + played.unsent
        counted.append(CountResult(name="due", injected=len(due), measured=due_count))
    if floor:
        truth = _truth(played.log, due)
        if truth is None:
            why = "not every due operation was answered"
            state = "failed" if judge.miscounted(counted) else "not judged"
            why = judge.miscounted(counted) or why
            return FidelityResult(client="", case=case.name, state=state, why=why, counts=counted)
        if due is not None:
            late_ns = start_late_ns(played.log, due, played.asked_ns)
        lines = judge.lines(case.answer_ms, floor, truth, _histogram(played.reported.response))
        lines += _group_lines(case, floor, played)
    state, why = judge.judged(case, lines, counted, played.run_delay_ns, late_ns)
    if state == "failed" and played.reported.errors:
        why += (
            f" (errors: {', '.join(f'{n} {kind}' for kind, n in played.reported.errors.items())})"
        )
    return FidelityResult(
        client="",
        case=case.name,
        state=state,
        why=why,
        lines=lines,
        counts=counted,
        stalls=stalls(played.log, case.load.timeout_ms * 1_000_000),
    )


def _group_lines(case: Case, floor: TimeFloor, played: PlayedCase) -> list[PercentileResult]:
    """The client's times of whole groups; like its times of reads, they include one floor."""
    if not case.group_answer_ms:
        return []
    if played.groups is None:
        raise TrialError("no groups, though it has the capability `groups`")
    injected = groups_ns(played.log, case.load.group)
    return judge.lines(case.group_answer_ms, floor, injected, _histogram(played.groups.time))


def _truth(log: Log, due: NsArray | None) -> NsArray | None:
    """The injected times; None if not every operation was answered."""
    if log.count("answered") < len(log.fate) or not log.fate:
        return None
    if due is None:
        return services_ns(log)
    return responses_ns(log, due) if len(due) == len(log.fate) else None


def _window(case: Case) -> RunRequest:
    if case.load.closed:
        return RunRequest(phase="measure", ops=case.load.ops)
    return RunRequest(phase="measure", duration_ms=case.load.duration_ms)


def _reads(done: Done) -> Operation:
    if "get" not in done.operations:
        raise TrialError(f"no get among {sorted(done.operations)}")
    return done.operations["get"]


def _histogram(blob: str | None) -> Histogram:
    merged = histogram.merge_encoded([blob])
    if merged is None:
        raise TrialError("no response histogram")
    return merged


def _ignore_progress(_ops: int) -> None:
    """Ignored: a window lasts only seconds."""


def _order(load: CaseLoad) -> list[str]:
    if load.group == 1:
        return ["--mix", "get=1"]
    sequence = " ".join(f"get@{step}" for step in range(load.group))
    return ["--sequence", sequence, "--key-step", str(load.group)]


def case_tape(case: Case, path: Path) -> Path:
    """Write the tape of a case: reads of stored keys. Raises UsageError."""
    load = case.load
    words = ["--keys", str(load.keys), "--key-pattern", _KEYS + "{index:08}"]
    words += ["--size", str(load.value_bytes), *_order(load)]
    if load.closed:
        # A tape has whole groups; the end of the run may cut one.
        words += ["--ops", str(-(-load.ops // load.group) * load.group)]
    else:
        words += ["--schedule", load.schedule, "--rate", f"{load.rate:g}"]
        words += ["--duration", f"{load.duration_ms}ms"]
    write_tape(path, *words)
    return path


def findings(spec: ClientSpec, wanted: list[Case], tries: int) -> Iterator[FidelityResult]:
    """Run each case on a client; yields each result as soon as it is known."""
    with temporary_folder() as folder, ClientUnderTest(spec, folder) as client:
        try:
            wire = client.wire()
        except UnsupportedError as error:
            yield from _all(spec, wanted, "not applicable", error.text)
            return
        except TrialError as error:
            yield from _all(spec, wanted, "failed", error.text)
            return
        if not wire:
            why = f"it speaks neither {' nor '.join(WIRES)}"
            yield from _all(spec, wanted, "not applicable", why)
            return
        for case in wanted:
            finding = retry_until_judged(lambda case=case: find(client, case, wire), tries)
            yield mark_known(spec.client.id, finding, known_failures())


def retry_until_judged(attempt: Callable[[], FidelityResult], tries: int) -> FidelityResult:
    """Repeat a case until its result is final, at most `tries` times.

    A case is repeated if it was not judged, or if only a percentile was wrong, or only counts of
    reads that a stall may have let time out: a bug does that each time, a delay on the host does
    not. Any other wrong count is final.
    """
    finding = attempt()
    for _ in range(tries - 1):
        if finding.state != "not judged" and not finding.may_be_noise:
            break
        finding = attempt()
    return finding


def mark_known(client: str, finding: FidelityResult, known: list[KnownMiss]) -> FidelityResult:
    """Mark a listed failure as known. A listed case that passes is a failure: update the list."""
    listed = [one for one in known if one.case == finding.case and fnmatch(client, one.client)]
    if listed and finding.state == "failed":
        return replace(finding, state="known", why=f"{finding.why}: {listed[0].reason}")
    if finding.state == "passed" and any(not one.sometimes for one in listed):
        return replace(finding, state="failed", why="it is listed as known, but passes")
    return finding


def _all(
    spec: ClientSpec, wanted: list[Case], state: JudgedState, why: str
) -> Iterator[FidelityResult]:
    for case in wanted:
        yield FidelityResult(client=spec.text, case=case.name, state=state, why=why)
