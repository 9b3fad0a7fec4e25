"""Plays one cell: a client's callers read and write while the server misbehaves."""

import base64
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from cachemark.analysis.resilience.answers import describe_wrong, judged_answers
from cachemark.analysis.resilience.cell import CALLS_PER_S, CellName, CellOutcome, WrongValue
from cachemark.analysis.resilience.figures import Figures, PlayedCalls, figures, timeline
from cachemark.analysis.resilience.verdict import FaultFinding, crash, findings, verdict_of
from cachemark.endpoints.capabilities import Demand, supported_wires, unclaimed
from cachemark.endpoints.clients import ClientSpec
from cachemark.endpoints.worker import Worker
from cachemark.host.engine_output import write_tape
from cachemark.model import protocol
from cachemark.model.call_log import TapeData, read_calls
from cachemark.model.errors import TrialError, UnsupportedError, WorkerCrashedError
from cachemark.model.faults import Fault
from cachemark.runs.resilience.injection import Injection, impossible, injection
from cachemark.runs.resilience.window import FaultWindow
from cachemark.runs.trials.prefill import run_prefill

KEYS = 1009  # a prime, so that each caller uses each key
# Longer than most cells: a tape that repeats also repeats its lengths.
_TAPE_S = 60
# The rules about times leave half a second between a time-out and a broken rule.
LONGEST_PAUSE_MS = 200.0
# A half of the four callers.
WAITING_THREADS = 2.0
# Rules that a client can break because it got no CPU. A wrong value is one however busy the machine
# is, and connections, descriptors and threads are opened by the client.
_BROKEN_BY_WAITING = (
    "lost call", "longest call", "no recovery", "time-out", "slow recovery", "errors as misses",
    "needless failures",
)  # fmt: skip
CALLERS = 4
_READY_S = 60.0
# Only the profile `common` sets a time-out; the worker's own limit is longer than any library's.
_TIMEOUT_MS = {"common": 500, "defaults": 10_000, "tuned": 10_000}


class CellStoppedError(Exception):
    """The cell was given up, because no caller waits for it any more."""


class CellPlayer:
    """Plays cells with a tape, and with files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._worker: Worker | None = None
        self._stopped = False
        self._tape_path = folder / "tape"
        self._calls_path = folder / "calls"
        self._tape = write_cell_tape(self._tape_path)

    def play(self, spec: ClientSpec, name: CellName, fault: Fault) -> CellOutcome:
        """Play a cell, and judge it. A client or server that fails is an outcome, too.

        Raises CellStoppedError after `stop`.
        """
        outcome = CellOutcome(name=name)
        if spec.client.in_process:
            return replace(outcome, unsupported="it is a cache in the process: it has no server")
        if name.profile == "tuned" and not spec.client.tuned:
            return replace(outcome, unsupported="its documents recommend no settings")
        if reason := impossible(fault):
            return replace(outcome, not_applicable=reason)
        try:
            return self._play(spec, outcome, fault)
        except TrialError as error:
            if self._stopped:
                raise CellStoppedError from error
            if isinstance(error, UnsupportedError):
                return replace(outcome, unsupported=error.text)
            remedy = f" ({error.remedy})" if error.remedy else ""
            return replace(outcome, failed=error.text + remedy)

    def stop(self) -> None:
        """From another thread: end the cell that is being played, and play no more."""
        self._stopped = True
        if self._worker is not None:
            self._worker.kill()

    def _play(self, spec: ClientSpec, outcome: CellOutcome, fault: Fault) -> CellOutcome:
        self._calls_path.unlink(missing_ok=True)
        with ExitStack() as stack:
            injected = stack.enter_context(injection(fault))
            command = injected.worker_command(spec.client.command)
            worker = stack.enter_context(Worker(command, name=spec.client.id))
            self._worker = worker
            if self._stopped:
                raise CellStoppedError
            ready = worker.hello(_READY_S)
            request = self._prepare(spec, outcome.name, injected, ready)
            _check_claims(ready, replace(request, servers=request.servers[:1]))
            if reason := _not_applicable(fault, ready, request.wire):
                return replace(outcome, not_applicable=reason)
            try:
                worker.prepare(request, _READY_S)
            except UnsupportedError as error:
                if not fault.needs_cluster:
                    raise
                return replace(outcome, not_applicable=error.text)
            run_prefill(partial(_prefill, worker))
            outcome = replace(
                outcome,
                library=ready.library,
                library_version=ready.library_version,
                runtime=ready.runtime,
                wire=request.wire,
                server=f"memcached {injected.server_version}",
            )
            played = FaultWindow(worker, fault, injected, request.timeout_ms)
            try:
                answer = played.play(self._calls_path)
            except WorkerCrashedError as error:
                if not played.fault_began:
                    raise
                ended = crash(error.text.removeprefix(f"{worker.name}: "))
                return replace(outcome, verdict=ended.verdict, findings=[ended])
            return self._judged(outcome, played, injected, answer)

    def _prepare(
        self, spec: ClientSpec, name: CellName, injected: Injection, ready: protocol.Ready
    ) -> protocol.Prepare:
        callers = 1 if spec.client.concurrency == "processes" else CALLERS
        can_thread = "threads" in ready.capabilities
        asked = {} if name.profile == "common" else {"profile": name.profile}
        if injected.trusted:
            asked["tls"] = str(injected.trusted)
        return protocol.Prepare(
            servers=injected.addresses,
            wire=(supported_wires(ready) or ["text"])[0],
            threads=callers if can_thread else 1,
            connections=callers,
            tape=str(self._tape_path),
            timeout_ms=_TIMEOUT_MS[name.profile],
            options=spec.options | asked,
        )

    def _judged(
        self,
        outcome: CellOutcome,
        played: FaultWindow,
        injected: Injection,
        answer: protocol.WorkerAnswer | None,
    ) -> CellOutcome:
        fault = played.fault
        returned = isinstance(answer, protocol.Done)
        calls = read_calls(self._calls_path, self._tape) if self._calls_path.exists() else []
        answers = judged_answers(calls, self._tape, injected.loss)
        cell_figures = figures(
            PlayedCalls(
                calls=calls,
                answers=answers,
                phases=played.phases,
                samples=played.samples,
                returned=returned,
                end=answer.text if isinstance(answer, protocol.Failure) else "",
                unsent=answer.unsent if isinstance(answer, protocol.Done) else 0,
                connections=played.connections,
                longest_pause_ns=played.longest_pause_ns,
                waited_ns=played.waited_ns,
                server_misses=played.server_misses,
                untrusted_calls=injected.untrusted_calls,
                can_be_served=fault.can_be_served,
            )
        )
        broken = findings(cell_figures, outcome.name.profile)
        verdict = verdict_of(broken)
        return replace(
            outcome,
            verdict=verdict,
            disturbed=disturbance(cell_figures, broken),
            findings=broken,
            figures=cell_figures,
            phases=played.phases,
            timeline=timeline(calls, answers, played.phases),
            wrong_values=self._wrong_values(answer),
        )

    def _wrong_values(self, answer: protocol.WorkerAnswer | None) -> list[WrongValue]:
        if not isinstance(answer, protocol.Done):
            return []
        wrong: list[WrongValue] = []
        for reply in answer.wrong_replies:
            _, key, _ = self._tape.record(reply.record)
            what = describe_wrong(self._tape, reply.record, base64.b64decode(reply.value))
            wrong.append(WrongValue(key=self._tape.key_name(key), what=what, value=reply.value))
        return wrong


def _not_applicable(fault: Fault, ready: protocol.Ready, wire: str) -> str:
    """Why a fault cannot affect a client; empty if it can."""
    if fault.needs_cluster and "cluster" not in ready.capabilities:
        return "it uses one server only"
    if fault.needs_tls and "tls" not in ready.capabilities:
        return "it has no TLS, or its worker does not use it (`tls`)"
    if (asked := fault.gives_up) and asked.way not in ready.capabilities:
        return f"its callers cannot give up a call like this (`{asked.way}`)"
    return "" if wire in fault.wires else f"in the {wire} protocol no client can notice it"


def _check_claims(ready: protocol.Ready, request: protocol.Prepare) -> None:
    """Raise UnsupportedError for a client that cannot be played."""
    if "calls" not in ready.capabilities:
        raise UnsupportedError("its worker writes no call log yet (`calls`)")
    demand = Demand(prepare=request, kinds=("get", "set"), open_loop=True)
    if reason := unclaimed(demand, ready):
        raise UnsupportedError(reason)


def _prefill(worker: Worker) -> protocol.Done:
    worker.send(protocol.RunRequest(phase="prefill"))
    until = time.monotonic() + _READY_S
    while (left := until - time.monotonic()) > 0:
        answer = worker.receive(left)
        if isinstance(answer, protocol.Done):
            return answer
        if answer is not None and not isinstance(answer, protocol.Progress):
            raise TrialError(f"{worker.name}: the keys could not be stored")
    raise TrialError(f"{worker.name}: the keys were not stored within {_READY_S:g} s")


def disturbance(figures: Figures, findings: Sequence[FaultFinding]) -> str:
    """The disturbance that can have caused the verdict of a cell, in words; empty without one.

    A client that is safe on a busy machine is safe.
    """
    sure = [one for one in findings if one.rule not in _BROKEN_BY_WAITING]
    if verdict_of(sure) == verdict_of(findings):
        return ""
    if figures.longest_pause_ms > LONGEST_PAUSE_MS:
        return f"the machine paused for {figures.longest_pause_ms:,.0f} ms"
    if figures.waiting_threads > WAITING_THREADS:
        return f"{figures.waiting_threads:.1f} threads of the cell waited for a CPU on average"
    return ""


def write_cell_tape(path: Path) -> TapeData:
    """Write the tape of all cells: reads in turn of all keys, and writes that are all unlike.

    Raises UsageError.
    """
    write_tape(
        path, "--keys", str(KEYS), "--distribution", "sequential", "--size", "100..1000",
        "--vary-lengths", "--mix", "get=9,set=1", "--schedule", "uniform",
        "--rate", str(CALLS_PER_S), "--duration", f"{_TAPE_S}s",
    )  # fmt: skip
    return TapeData(path)
