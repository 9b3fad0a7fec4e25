"""Drives one worker in a test: starts it once, sends single requests, restarts it on failure."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from cachemark.endpoints.clients import ClientSpec
from cachemark.endpoints.wire import supported_wires
from cachemark.endpoints.worker import Worker
from cachemark.host import process
from cachemark.model.errors import TrialError, UsageError
from cachemark.model.protocol import (
    Done,
    Message,
    Prepare,
    Progress,
    Ready,
    RunRequest,
    WorkerAnswer,
)

ANSWER_S = 60.0


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
    """One client's worker. Use as a context manager: it stops and reaps the worker."""

    def __init__(self, spec: ClientSpec, folder: Path) -> None:
        self.spec = spec
        self.folder = folder
        self._worker: Worker | None = None
        self._ready: Ready | None = None

    def __enter__(self) -> WorkerDriver:
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
    def ready(self) -> Ready:
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

    def replace(self) -> None:
        """Stop the worker; the next use starts a new one."""
        if self._worker is not None:
            self._worker.__exit__()
        self._worker = self._ready = None

    def ask(self, request: Message) -> WorkerAnswer:
        """Send a request other than `run`, and wait for its answer. Raises TrialError."""
        worker = self.worker
        worker.send(request)
        answer = worker.receive(ANSWER_S)
        if answer is None:
            raise CaseFailedError(f"no answer within {ANSWER_S:g} s")
        return answer

    def prepare(self, request: Prepare) -> None:
        """Send `prepare`, which must succeed. Raises CaseFailedError."""
        if not self._ready:
            _ = self.ready
        answer = self.ask(request)
        if not isinstance(answer, Ready):
            raise CaseFailedError(f"prepare was answered by {answer}")

    def finish(self, timeout_s: float = ANSWER_S) -> WorkerAnswer:
        """Wait for the answer that ends the current run, after its `progress` messages."""
        until = time.monotonic() + timeout_s
        while (left := until - time.monotonic()) > 0:
            answer = self.worker.receive(left)
            if answer is not None and not isinstance(answer, Progress):
                return answer
        raise CaseFailedError(f"the run did not end within {timeout_s:g} s")

    def play(self, request: RunRequest, timeout_s: float = ANSWER_S) -> Done:
        """Play a phase to its end. Raises CaseFailedError."""
        self.worker.send(request)
        done = self.finish(timeout_s)
        if not isinstance(done, Done):
            raise CaseFailedError(f"{request.phase} was answered by {done}")
        expect_equal(done.phase, request.phase, "the phase in done")
        return done

    def tape(self, *arguments: str) -> Path:
        """Write a tape with the engine; returns its path. Raises UsageError."""
        path = self.folder / "tape"
        command = [process.binary_path(), "tape", "write", "--out", str(path), *arguments]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise UsageError(f"tape: {ended.stderr.strip()}")
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
