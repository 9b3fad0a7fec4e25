"""Calibrate a client: a closed loop for its floor, then open loops at rising rates."""

import datetime
import math
import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from cachemark import __version__
from cachemark.analysis.percentiles import min_sample_size
from cachemark.analysis.statistics.figures import ok, rate, response_ns
from cachemark.analysis.statistics.interval import percentile_against_limit
from cachemark.endpoints.clients import ClientSpec
from cachemark.endpoints.servers import ServerSpec, parse_spec
from cachemark.endpoints.servers.engine_process import EngineProcess, Listening
from cachemark.endpoints.servers.running import Member, RunningServer
from cachemark.host import process
from cachemark.model import histogram
from cachemark.model.calibration import Calibration, CalibrationStep, Floor
from cachemark.model.experiment import Keys, Load, Timing, Values, Workload
from cachemark.model.outcome import Cell, Outcome, ServerFacts, Trial
from cachemark.model.protocol import Done
from cachemark.model.protocol_results import attempts_of
from cachemark.model.run_header import HostFacts
from cachemark.runs.tapes import TapeCache
from cachemark.runs.trials.setting import Setting
from cachemark.runs.trials.trial import run_trial

_READY_S = 10.0
# The null responder has one answer. With one key, it is right for every request.
_WORKLOAD = Workload(
    name="calibrate",
    mix={"get": 1},
    keys=Keys(count=1, distribution="constant", length="20"),
    values=Values(size="100"),
    prefill=0.0,
)
# The rates of the sweep, as parts of the closed loop's rate. A rate is missed if two attempts fail.
_RATE_FRACTIONS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_ATTEMPTS = 2
_MIN_ACHIEVED = 0.99
# With fewer operations in a window, p99.9 cannot be judged. So low rates have longer windows.
_MIN_OPERATIONS = round(1.05 * min_sample_size(99.9))
_LONGEST_WINDOW_MS = 10_000


class CalibrationSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The client's callers, the length of a window, and the limit of its own delay."""

    threads: int = 1
    connections: int = 1
    depth: int = 1
    window_ms: int = 1000
    budget_ns: int = 100_000
    server_cpus: str = ""
    worker_cpus: str = ""


def calibrate(
    client: ClientSpec,
    settings: CalibrationSettings,
    tapes: TapeCache,
    host: HostFacts,
    on_progress: Callable[[str], None],
) -> Calibration:
    """Calibrate one client: its floor, then its highest clean rate.

    A failure of the client raises nothing: the result's `why` has the reason.
    """
    calibration_run = _CalibrationRun(client, settings, tapes, null=True)
    on_progress("floor")
    closed = calibration_run.closed()
    if _unusable_reason(closed):
        # Some clients send more than gets when they connect. The null responder cannot answer that.
        calibration_run = _CalibrationRun(client, settings, tapes, null=False)
        closed = calibration_run.closed()
    blank = _blank(client, settings, host, calibration_run.name, closed)
    why = _unusable_reason(closed)
    if why or closed.measure is None:
        return msgspec.structs.replace(blank, why=why)
    floor = _floor(closed.measure)
    if closed.worker is None or "open_loop" not in closed.worker.capabilities:
        return msgspec.structs.replace(blank, floor=floor, why="its worker plays no open loop")
    steps = sweep(
        floor.ops_per_s,
        _MIN_OPERATIONS * 1000 / max(settings.window_ms, _LONGEST_WINDOW_MS),
        lambda rate: _measure_step(calibration_run, rate, on_progress),
    )
    clean = [step.rate for step in steps if step.clean]
    if not steps:
        why = f"too slow: p99.9 needs {_MIN_OPERATIONS} operations in a window"
    elif not clean:
        why = "no rate was shown to be clean"
    return msgspec.structs.replace(
        blank, floor=floor, steps=steps, clean_rate=max(clean, default=None), why=why
    )


def _blank(
    client: ClientSpec,
    settings: CalibrationSettings,
    host: HostFacts,
    against: str,
    closed: Outcome,
) -> Calibration:
    """A calibration without figures; `closed` is the outcome of the closed loop."""
    return Calibration(
        at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        host=host.name,
        cpu_model=host.cpu_model,
        cpus=len(host.usable_cpus),
        cachemark=__version__,
        client=client.text,
        library_version=closed.worker.library_version if closed.worker else "",
        against=against,
        threads=settings.threads,
        connections=settings.connections,
        depth=settings.depth,
        budget_ns=settings.budget_ns,
        noise=closed.noise,
    )


def sweep(
    closed_rate: float, min_rate: float, play: Callable[[float], CalibrationStep]
) -> list[CalibrationStep]:
    """Play rising rates, from `min_rate` (ops/s) on, until one is missed twice; all steps.

    A rate that could not be judged is neither clean nor missed.
    """
    steps: list[CalibrationStep] = []
    for fraction in (
        fraction for fraction in _RATE_FRACTIONS if closed_rate * fraction >= min_rate
    ):
        for _ in range(_ATTEMPTS):
            steps.append(play(float(f"{closed_rate * fraction:.3g}")))
            if steps[-1].clean:
                break
        if not steps[-1].clean and steps[-1].judged:
            break
    return steps


def judge_step(requested_rate: float, outcome: Outcome, budget_ns: int) -> CalibrationStep:
    """Judge the open loop at one rate (ops/s). Pure."""
    measure, why = outcome.measure, _unusable_reason(outcome)
    if why or measure is None:
        return CalibrationStep(
            rate=requested_rate, lag_p999_ns=None, achieved=0.0, clean=False, why=why
        )
    own = histogram.merge_encoded([measure.generator_lag or measure.send_lag])
    count, late_count = (own.count, own.above(budget_ns)) if own else (0, 0)
    on_time = percentile_against_limit(count, late_count, 99.9)
    due = attempts_of(measure.operations) + measure.unsent
    # A client that finishes late was slower than requested.
    planned_ns = due / requested_rate * 1e9
    achieved = ok(measure) / due * min(1.0, planned_ns / measure.elapsed_ns) if due else 0.0
    slow = achieved < _MIN_ACHIEVED
    reasons = {
        "within": "fell behind" if slow else "",
        "above": "sent late",
        "unknown": "fell behind"
        if slow
        else f"not judged: {late_count} of {count} operations were sent late",
    }
    return CalibrationStep(
        rate=requested_rate,
        lag_p999_ns=own.percentile(99.9) if own and count >= min_sample_size(99.9) else None,
        achieved=round(achieved, 4),
        clean=on_time == "within" and not slow,
        judged=on_time != "unknown" or slow,
        why=reasons[on_time],
    )


class _CalibrationRun:
    """The trials of one client against one server."""

    def __init__(
        self, client: ClientSpec, settings: CalibrationSettings, tapes: TapeCache, *, null: bool
    ) -> None:
        self.name = "null" if null else "embedded"
        self.settings = settings
        self._client = client
        self._tapes = tapes
        self._null = null
        self._count = 0
        self._load = Load(
            name="closed",
            threads=settings.threads,
            connections=settings.connections,
            depth=settings.depth,
        )

    def closed(self) -> Outcome:
        """Play the closed loop."""
        return self._play(self._load, self.settings.window_ms)

    def open(self, requested_rate: float) -> Outcome:
        """Play an open loop at a rate (ops/s) with Poisson arrivals."""
        paced = msgspec.structs.replace(
            self._load, name="open", schedule="poisson", rate=requested_rate
        )
        enough_ms = math.ceil(_MIN_OPERATIONS * 1000 / requested_rate)
        return self._play(paced, max(self.settings.window_ms, enough_ms))

    def _play(self, load: Load, window_ms: int) -> Outcome:
        self._count += 1
        settings = self.settings
        prefill = 0.0 if self._null else 1.0
        workload = msgspec.structs.replace(_WORKLOAD, prefill=prefill)
        timing = Timing(warmup_ms=min(500, settings.window_ms), measure_ms=window_ms)
        # A new seed for each trial, so that the cache drops the tape of the previous rate.
        tape = self._tapes.get(workload, load, timing, self._count)
        cell = Cell(
            client=self._client.text, server=self.name, workload="calibrate", load=load.name
        )
        server = ServerSpec(text="null", kind="null") if self._null else parse_spec("embedded")
        setting = Setting(
            run="calibrate",
            trial=Trial(index=self._count, block=0, cell=cell, tape_seed=self._count),
            client=self._client,
            server=server,
            workload=workload,
            load=load,
            timing=timing,
            tape=tape,
            server_cpus=settings.server_cpus,
            worker_cpus=settings.worker_cpus,
            noise="note",
            target=(lambda: responder(tape.path, settings.server_cpus)) if self._null else None,
        )
        return run_trial(setting, lambda _: None)


def _measure_step(
    calibration_run: _CalibrationRun, requested_rate: float, on_progress: Callable[[str], None]
) -> CalibrationStep:
    on_progress(f"{requested_rate:,.0f}/s")
    return judge_step(
        requested_rate, calibration_run.open(requested_rate), calibration_run.settings.budget_ns
    )


def _unusable_reason(outcome: Outcome) -> str:
    """Why a trial cannot be used; empty if it can. Lag is no reason: the sweep measures it."""
    if outcome.state != "measured":
        return outcome.reason
    requested_rate = ("send-lag", "achieved")
    wrong = [
        finding.text
        for finding in outcome.findings
        if finding.weight == "INVALID" and finding.rule not in requested_rate
    ]
    failed = sum(
        op.attempts - op.ok
        for op in (outcome.measure.operations if outcome.measure else {}).values()
    )
    return wrong[0] if wrong else f"{failed} operations failed" if failed else ""


def _floor(measure: Done) -> Floor:
    operations = list(measure.operations.values())
    return Floor(
        ops_per_s=rate(operations, measure.elapsed_ns),
        p50_ns=response_ns(operations, 50),
        p99_ns=response_ns(operations, 99),
        p999_ns=response_ns(operations, 99.9),
    )


@contextmanager
def responder(tape: Path, cpus: str) -> Generator[RunningServer]:
    """Run the responder on a free port; it has no `stats`. Raises TrialError."""
    command = [process.binary_path(), "null-server", "--tape", str(tape), "--stop-with-stdin"]
    with process.start(command, cpus=cpus, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        announced = EngineProcess("null", child).answer(Listening, _READY_S)
        facts = ServerFacts(
            kind="null", version="", command=command, address=announced.addresses[0], cpus=cpus
        )
        server = RunningServer(announced.addresses, facts, [Member(name="null", child=child)])
        try:
            yield server
        finally:
            server.close()
