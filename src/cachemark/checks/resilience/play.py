"""Plays one cell: a client's callers read and write while the server misbehaves."""

from __future__ import annotations

import base64
import time
from contextlib import ExitStack
from pathlib import Path

from msgspec.structs import replace

from cachemark.checks.resilience.answers import describe_wrong, judged_answers
from cachemark.checks.resilience.call_log import read_calls
from cachemark.checks.resilience.cell import CellName, CellOutcome, WrongValue
from cachemark.checks.resilience.faults import Fault
from cachemark.checks.resilience.figures import Phases, Played, Samples, figures, timeline
from cachemark.checks.resilience.injection import Injection, impossible, injection
from cachemark.checks.resilience.samples import sample
from cachemark.checks.resilience.tape import KEYS, write_tape
from cachemark.checks.resilience.verdict import findings, verdict_of
from cachemark.endpoints.capabilities import Demand, unclaimed
from cachemark.endpoints.clients import Client, ClientSpec
from cachemark.endpoints.wire import supported_wires
from cachemark.endpoints.worker import Worker
from cachemark.model.errors import TrialError, UnsupportedError
from cachemark.model.protocol import Answer, Done, Failure, Prepare, Progress, Ready, Run

CALLERS = 4
_READY_S = 60.0
# Only the profile `common` sets a time-out; the worker's own limit comes after that of any library.
_TIMEOUT_MS = {"common": 500, "defaults": 10_000, "tuned": 10_000}
_START_AHEAD_NS = 300_000_000
# After the last call's time-out a worker has this long to notice that a call does not return.
_LOST_S = 5.0
_SLACK_S = 10.0


class CellPlayer:
    """Plays cells with a tape, and with files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._tape_path = folder / "tape"
        self._calls_path = folder / "calls"
        self._tape = write_tape(self._tape_path)

    def play(self, spec: ClientSpec, name: CellName, fault: Fault) -> CellOutcome:
        """Play a cell, and judge it. A client or server that fails is an outcome, too."""
        outcome = CellOutcome(name=name)
        if spec.client.in_process:
            return replace(outcome, unsupported="it is a cache in the process: it has no server")
        if name.profile == "tuned" and not spec.client.tuned:
            return replace(outcome, unsupported="its documents recommend no settings")
        if reason := impossible(fault):
            return replace(outcome, not_applicable=reason)
        try:
            return self._play(spec, outcome, fault)
        except UnsupportedError as error:
            return replace(outcome, unsupported=error.text)
        except TrialError as error:
            return replace(outcome, failed=error.text)

    def _play(self, spec: ClientSpec, outcome: CellOutcome, fault: Fault) -> CellOutcome:
        self._calls_path.unlink(missing_ok=True)
        with ExitStack() as stack:
            injected = stack.enter_context(injection(fault))
            command = injected.worker_command(spec.client.command)
            worker = stack.enter_context(Worker(command, name=spec.client.id))
            ready = worker.hello(_READY_S)
            request = self._prepare(spec, outcome.name, injected.addresses, ready)
            _check_claims(ready, replace(request, servers=request.servers[:1]))
            if reason := _not_applicable(fault, ready, request.wire):
                return replace(outcome, not_applicable=reason)
            try:
                worker.prepare(request, _READY_S)
            except UnsupportedError as error:
                if not fault.needs_cluster:
                    raise
                return replace(outcome, not_applicable=error.text)
            _prefill(worker)
            played = _Window(worker, fault, injected, request.timeout_ms)
            answer = played.play(self._calls_path)
            outcome = replace(
                outcome,
                library=ready.library,
                library_version=ready.library_version,
                runtime=ready.runtime,
                wire=request.wire,
                server=f"memcached {injected.server_version}",
            )
            return self._judged(outcome, played, injected, answer)

    def _prepare(
        self, spec: ClientSpec, name: CellName, addresses: list[str], ready: Ready
    ) -> Prepare:
        callers = _callers(spec.client)
        can_thread = "threads" in ready.capabilities
        return Prepare(
            servers=addresses,
            wire=(supported_wires(ready) or ["text"])[0],
            threads=callers if can_thread else 1,
            connections=callers,
            tape=str(self._tape_path),
            timeout_ms=_TIMEOUT_MS[name.profile],
            options=spec.options | ({} if name.profile == "common" else {"profile": name.profile}),
        )

    def _judged(
        self, outcome: CellOutcome, played: _Window, injected: Injection, answer: Answer | None
    ) -> CellOutcome:
        fault = played.fault
        returned = isinstance(answer, Done)
        calls = read_calls(self._calls_path, self._tape) if self._calls_path.exists() else []
        answers = judged_answers(calls, self._tape, injected.loss)
        cell_figures = figures(
            Played(
                calls=calls,
                answers=answers,
                phases=played.phases,
                samples=played.samples,
                returned=returned,
                unsent=answer.unsent if isinstance(answer, Done) else 0,
                connections=played.connections,
                server_misses=played.server_misses,
                several_servers=fault.needs_cluster,
            )
        )
        broken = findings(cell_figures, outcome.name.profile)
        return replace(
            outcome,
            verdict=verdict_of(broken),
            findings=broken,
            figures=cell_figures,
            phases=played.phases,
            timeline=timeline(calls, answers, played.phases),
            wrong_values=self._wrong_values(answer),
        )

    def _wrong_values(self, answer: Answer | None) -> list[WrongValue]:
        if not isinstance(answer, Done):
            return []
        wrong: list[WrongValue] = []
        for reply in answer.wrong_replies:
            _, key, _ = self._tape.record(reply.record)
            what = describe_wrong(self._tape, reply.record, base64.b64decode(reply.value))
            wrong.append(WrongValue(key=self._tape.key_name(key), what=what, value=reply.value))
        return wrong


class _Window:
    """The window of a cell: the calls, the fault in the middle of them, and samples."""

    def __init__(self, worker: Worker, fault: Fault, injected: Injection, timeout_ms: int) -> None:
        self._worker, self._injected = worker, injected
        self.fault = fault
        self._timeout_s = timeout_ms / 1e3
        self._ended: Answer | None = None
        self.connections = self.server_misses = 0

    def play(self, calls_path: Path) -> Answer | None:
        """Play; the answer that ended the run, None if there was none in time.

        Raises TrialError if the worker or the server fails.
        """
        fault, injected = self.fault, self._injected
        total_ms = fault.before_ms + fault.during_ms + fault.after_ms
        start_ns = time.monotonic_ns() + _START_AHEAD_NS
        self._worker.send(
            Run(
                phase="measure",
                start_unix_ns=time.time_ns() + _START_AHEAD_NS,
                duration_ms=total_ms,
                calls=str(calls_path),
                gives_up=fault.gives_up,
            )
        )
        self._wait_until(start_ns + fault.before_ms * 1_000_000)
        before, opened = sample(self._worker.pid), injected.connections()
        fault_ns = injected.begin()
        try:
            self._wait_until(fault_ns + fault.during_ms * 1_000_000)
            fault_end = sample(self._worker.pid)
        finally:
            fault_end_ns = injected.end()
        end_ns = start_ns + total_ms * 1_000_000
        self._wait_until(end_ns)
        after = sample(self._worker.pid)
        self.connections = injected.connections() - opened
        self.samples = Samples(before=before, fault_end=fault_end, after=after)
        self.phases = Phases(
            start_ns=start_ns, fault_ns=fault_ns, fault_end_ns=fault_end_ns, end_ns=end_ns
        )
        self._wait_until(end_ns + round((4 * self._timeout_s + _LOST_S + _SLACK_S) * 1e9))
        self.server_misses = injected.misses()
        return self._ended

    def _wait_until(self, instant_ns: int) -> None:
        """Wait for an instant; once the run has ended, only until then if it is not the last."""
        while self._ended is None and (left_ns := instant_ns - time.monotonic_ns()) > 0:
            answer = self._worker.receive(left_ns / 1e9)
            if answer is not None and not isinstance(answer, Progress):
                self._ended = answer
        # The kind `client` says that a call does not return, which is what is judged here.
        if isinstance(self._ended, Failure) and self._ended.kind != "client":
            raise self._worker.error_for_answer(self._ended, "run")


def _callers(client: Client) -> int:
    """How many callers one worker can be: a client whose callers are processes has one."""
    return 1 if client.concurrency == "processes" else CALLERS


def _not_applicable(fault: Fault, ready: Ready, wire: str) -> str:
    """Why a fault cannot affect a client; empty if it can."""
    if fault.needs_cluster and "cluster" not in ready.capabilities:
        return "it uses one server only"
    if (asked := fault.gives_up) and asked.way not in ready.capabilities:
        return f"its callers cannot give up a call like this (`{asked.way}`)"
    return "" if wire in fault.wires else f"in the {wire} protocol no client can notice it"


def _check_claims(ready: Ready, request: Prepare) -> None:
    """Raise UnsupportedError for a client that cannot be played."""
    if "calls" not in ready.capabilities:
        raise UnsupportedError("its worker writes no call log yet (`calls`)")
    demand = Demand(prepare=request, kinds=("get", "set"), open_loop=True)
    if reason := unclaimed(demand, ready):
        raise UnsupportedError(reason)


def _prefill(worker: Worker) -> None:
    worker.send(Run(phase="prefill"))
    until = time.monotonic() + _READY_S
    while (left := until - time.monotonic()) > 0:
        answer = worker.receive(left)
        if isinstance(answer, Done) and answer.operations["set"].ok == KEYS:
            return
        if answer is not None and not isinstance(answer, Progress):
            raise TrialError(f"{worker.name}: the keys could not be stored")
    raise TrialError(f"{worker.name}: the keys were not stored within {_READY_S:g} s")
