"""Drives a worker as an orchestrator does, for tests: every client that is set up here."""

import fcntl
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest

from cachemark.endpoints.client_readiness import Readiness, query_workers, recorded_readiness
from cachemark.endpoints.clients import Client, registry, workers_folder
from cachemark.endpoints.worker import Worker
from cachemark.host import process
from cachemark.model.errors import TrialError
from cachemark.model.protocol import (
    Done,
    Message,
    Prepare,
    Progress,
    Ready,
    RunRequest,
    WorkerAnswer,
)

# Nothing here is timed, and a busy machine may stand still for seconds.
ANSWER_S = 120.0
_TIMEOUT_MS = 10_000
_STACKS_S = 10.0
# A refusal takes milliseconds. Some libraries take none for an answer, and wait.
REFUSED_MS = 2_000


@cache
def known() -> dict[str, Client]:
    """Every registered client by id."""
    return registry(process.binary_path())


@cache
def reported() -> dict[str, Readiness]:
    """The claims of each client's worker, so that tests are made of them.

    Set-up asked most of them. One of the processes that run tests asks those that have changed.
    """
    folder = workers_folder()
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = recorded_readiness(known().values(), folder)
        found = {name: said for name, said in found.items() if not _failed(said)}
        if changed := [client for client in known().values() if client.id not in found]:
            found |= {client.id: said for client, said in query_workers(changed, folder)}
    finally:
        os.close(lock)
    # Workers answer in any order, and each process that runs tests must have the same tests.
    return {name: found[name] for name in known()}


def claims(client: str) -> Ready | None:
    """The answer of a client's worker to `hello`; None if the client cannot be played here."""
    return reported()[client].ready


def absent() -> dict[str, str]:
    """The clients that cannot be played on this machine, and why."""
    return {
        name: said.state
        for name, said in reported().items()
        if said.ready is None and not _failed(said)
    }


def _failed(said: Readiness) -> bool:
    return said.state.startswith("failed")


def clients(only: Collection[str] | None = None) -> list[Any]:
    """Every client that is set up here as a parameter, or only the ones in `only`."""
    first = _first_of_each_kind(list(known().values()))
    return [
        pytest.param(_played(client, first), id=client.id, marks=_marks(client, first))
        for client in known().values()
        if client.id not in absent() and (only is None or client.id in only)
    ]


def _first_of_each_kind(known: list[Client]) -> set[str]:
    """A network client and an in-process cache of each language: its whole loop is played."""
    first: dict[tuple[str, bool], str] = {}
    for client in known:
        if not client.id.endswith("/null"):
            first.setdefault((client.id.split("/")[0], client.in_process), client.id)
    return set(first.values())


def _played(client: Client, first: set[str]) -> Client:
    """The client as it is tested. Its JVM uses the quick compiler only, unless it is a first one.

    The best compiler takes more CPU time than the operations of a test. The first network client
    and the first cache have it, for the loop that all clients of Java share.
    """
    if client.language != "java" or client.id in first:
        return client
    program, *words = client.command
    return msgspec.structs.replace(client, command=[program, "-XX:TieredStopAtLevel=1", *words])


def _marks(client: Client, first: set[str]) -> list[pytest.MarkDecorator]:
    # Where tests are spread over processes, one process has all tests of a client.
    marks = [pytest.mark.xdist_group(client.id)]
    if client.id.startswith("pypy/"):
        marks.append(pytest.mark.slow("plays the files of python/* again, in PyPy"))
    elif client.id not in first and not client.id.endswith("/null"):
        marks.append(pytest.mark.slow("plays a further library with the loop of its language"))
    return marks


@contextmanager
def started(client: Client) -> Generator[tuple[Worker, Ready]]:
    """A worker that has said who it is."""
    with Worker(client.command, name=client.id) as worker:
        yield worker, worker.hello(ANSWER_S)


Workers = Callable[[str], tuple[Worker, Ready]]


@pytest.fixture(scope="module")
def workers() -> Generator[Workers]:
    """One worker of each client that a module asks for: a second prepare is as good as a first."""
    with ExitStack() as ends:

        @cache
        def worker(name: str) -> tuple[Worker, Ready]:
            return ends.enter_context(started(known()[name]))

        yield worker


def patient(**fields: Any) -> Prepare:
    """A request to prepare, with patience for a server that a busy machine keeps from answering."""
    return Prepare(**{"timeout_ms": _TIMEOUT_MS, **fields})


def ask(worker: Worker, request: Message) -> WorkerAnswer:
    """The answer to a request other than a run's."""
    worker.send(request)
    answer = worker.receive(ANSWER_S)
    assert answer is not None, f"{worker.name} said nothing\n{stacks(worker)}"
    return answer


def stacks(worker: Worker) -> str:
    """End a worker that hangs. Where its threads wait in the kernel, and what its runtime tells.

    Python (with PYTHONFAULTHANDLER) and Go tell it at SIGABRT, Java at SIGQUIT.
    """
    waits = [
        " ".join((task / name).read_text().strip() for name in ("comm", "wchan", "syscall"))
        for task in sorted(Path(f"/proc/{worker.pid}/task").iterdir())
    ]
    is_java = Path(worker.command[0]).name == "java"
    os.killpg(worker.pid, signal.SIGQUIT if is_java else signal.SIGABRT)
    until = time.monotonic() + _STACKS_S
    with suppress(TrialError):  # it has ended
        while (left := until - time.monotonic()) > 0:
            worker.receive(left)
    return "\n".join([*waits, worker.log_tail()])


def finish(worker: Worker, timeout_s: float = ANSWER_S) -> WorkerAnswer:
    """The last answer of a run that is going on: what comes after its progress."""
    until = time.monotonic() + timeout_s
    while (left := until - time.monotonic()) > 0:
        answer = worker.receive(left)
        if answer is not None and not isinstance(answer, Progress):
            return answer
    raise AssertionError(
        f"{worker.name}: the run did not end within {timeout_s:g} s\n{stacks(worker)}"
    )


def play(worker: Worker, request: RunRequest, timeout_s: float = ANSWER_S) -> Done:
    """Play a phase to its end."""
    worker.send(request)
    done = finish(worker, timeout_s)
    assert isinstance(done, Done), f"{worker.name}: {done}"
    assert done.phase == request.phase
    return done


def write_tape(folder: Path, *arguments: str) -> Path:
    """A tape of the engine."""
    path = folder / "tape"
    path.unlink(missing_ok=True)  # a worker may read the one before
    path.write_bytes(_tape(arguments))
    return path


@lru_cache(maxsize=100)
def _tape(arguments: tuple[str, ...]) -> bytes:
    """A tape takes 10 ms of CPU time and 1 MB, and the clients play the same ones."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "tape"
        command = [process.binary_path(), "tape", "write", "--out", str(path), *arguments]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        return path.read_bytes()


def rise(before: Mapping[str, str], after: Mapping[str, str], name: str) -> int:
    """By how much a counter of the server rose."""
    return int(after[name]) - int(before[name])


def line(message: Mapping[str, Any]) -> bytes:
    """Any object as a line, for requests that are wrong."""
    return json.dumps(message).encode() + b"\n"
