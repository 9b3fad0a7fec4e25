"""Drives one worker in a test: starts it and its server once, and both again on failure."""

import time
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from cachemark.endpoints.capabilities import supported_wires
from cachemark.endpoints.clients import ClientSpec
from cachemark.endpoints.servers import RunningServer, parse_spec, running
from cachemark.endpoints.worker import Worker
from cachemark.host.engine_output import write_tape
from cachemark.model import protocol
from cachemark.model.errors import TrialError

ANSWER_S = 60.0
# Where no reply is to time out. A library that leaves a server alone after a time-out would count
# errors from then on, where the machine is so busy that a reply takes seconds.
_PATIENT_MS = 30_000
# With room for the items of all cases: those that were removed keep their memory.
_SERVER = "memcached:threads=1,memory=256"


class CaseFailedError(Exception):
    """A case failed; the text says why."""


class NotApplicableError(Exception):
    """A case does not apply to this worker; the text says why."""


def expect(holds: object, what: str) -> None:
    """Raise CaseFailedError unless a condition holds."""
    if not holds:
        raise CaseFailedError(what)


def expect_equal(actual: object, expected: object, what: str) -> None:
    """Raise CaseFailedError unless two values are equal."""
    if actual != expected:
        raise CaseFailedError(f"{what}: {actual}, expected {expected}")


class WorkerDriver:
    """One client's worker. Use as a context manager: it stops worker and server."""

    def __init__(self, spec: ClientSpec, folder: Path) -> None:
        self.spec = spec
        self.folder = folder
        self._server: RunningServer | None = None
        self._stop_server = ExitStack()
        self._worker: Worker | None = None
        self._ready: protocol.Ready | None = None

    def __enter__(self) -> "WorkerDriver":
        return self

    def __exit__(self, *_: object) -> None:
        self.replace()

    @property
    def worker(self) -> Worker:
        """The worker, started on first use. Raises TrialError, UnsupportedError."""
        if self._worker is None:
            client = self.spec.client
            self._worker = Worker(client.command, name=client.id)
        return self._worker

    @property
    def ready(self) -> protocol.Ready:
        """Its answer to `hello`. Raises TrialError, UnsupportedError."""
        if self._ready is None:
            self._ready = self.worker.hello(ANSWER_S)
        return self._ready

    @property
    def wires(self) -> list[str]:
        """The wire protocols of the client, its default first."""
        return supported_wires(self.ready)

    def can(self, capability: str) -> bool:
        """Whether the client has a capability."""
        return capability in self.ready.capabilities

    def empty_server(self, wire: str) -> RunningServer:
        """A server without items: that of the case before, if it still runs. Raises TrialError."""
        with suppress(TrialError):
            if self._server is not None:
                self._server.remove_items()
                return self._server
        self._stop_server.close()
        spec = parse_spec("none" if wire == "none" else _SERVER)
        self._server = self._stop_server.enter_context(running(spec))
        return self._server

    def replace(self) -> None:
        """Stop worker and server; the next use starts new ones."""
        if self._worker is not None:
            self._worker.__exit__()
        self._stop_server.close()
        self._worker = self._ready = self._server = None

    def ask(self, request: protocol.Message) -> protocol.WorkerAnswer:
        """Send a request other than `run`, and wait for its answer. Raises TrialError."""
        worker = self.worker
        worker.send(request)
        answer = worker.receive(ANSWER_S)
        if answer is None:
            raise CaseFailedError(f"no answer within {ANSWER_S:g} s")
        return answer

    def request(
        self, wire: str, servers: list[str], tape: Iterable[str], **fields: Any
    ) -> protocol.Prepare:
        """A `prepare` for a tape, which is written with these arguments. Raises UsageError."""
        path = str(self.tape(*tape))
        fields = {"timeout_ms": _PATIENT_MS, "options": self.spec.options, **fields}
        return protocol.Prepare(servers=servers, wire=wire, tape=path, **fields)

    def begin(
        self, wire: str, servers: list[str], tape: Iterable[str], **fields: Any
    ) -> protocol.Done:
        """Prepare and prefill; returns the prefill's `done`. Raises CaseFailedError."""
        self.prepare(self.request(wire, servers, tape, **fields))
        return self.play(protocol.RunRequest(phase="prefill"))

    def prepare(self, request: protocol.Prepare) -> None:
        """Send `prepare`, which must succeed. Raises CaseFailedError."""
        if not self._ready:
            _ = self.ready
        answer = self.ask(request)
        if not isinstance(answer, protocol.Ready):
            raise CaseFailedError(f"prepare was answered by {answer}")

    def finish(self, timeout_s: float = ANSWER_S) -> protocol.Done:
        """Wait for the `done` of the current run, after its `progress`. Raises CaseFailedError."""
        until = time.monotonic() + timeout_s
        while (left := until - time.monotonic()) > 0:
            answer = self.worker.receive(left)
            if isinstance(answer, protocol.Done):
                return answer
            if answer is not None and not isinstance(answer, protocol.Progress):
                raise CaseFailedError(f"the run was answered by {answer}")
        raise CaseFailedError(f"the run did not end within {timeout_s:g} s")

    def play(self, request: protocol.RunRequest, timeout_s: float = ANSWER_S) -> protocol.Done:
        """Play a phase to its end. Raises CaseFailedError."""
        self.worker.send(request)
        done = self.finish(timeout_s)
        expect_equal(done.phase, request.phase, "the phase in done")
        return done

    def tape(self, *arguments: str) -> Path:
        """Write a tape with the engine; returns its path. Raises UsageError."""
        path = self.folder / "tape"
        write_tape(path, *arguments)
        return path


def exits(driver: WorkerDriver, within_s: float) -> bool:
    """Whether the worker's process exits by itself within `within_s` seconds."""
    until = time.monotonic() + within_s
    try:
        while (left := until - time.monotonic()) > 0:
            if driver.worker.receive(left) is None:
                return False
    except TrialError:
        return True
    return False
