"""A worker that plays one kind of operation, N and 2N times."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from operator import sub
from pathlib import Path
from struct import unpack

import msgspec

from cachemark.endpoints.capabilities import select_wire, unclaimed
from cachemark.endpoints.clients import ClientSpec
from cachemark.endpoints.fleet import Fleet, RunMonitor
from cachemark.endpoints.servers import RunningServer, ServerSpec, options_for, parse_spec
from cachemark.model.errors import TrialError, UnsupportedError
from cachemark.model.experiment import Load, Workload
from cachemark.model.protocol import Done, Prepare, RunRequest
from cachemark.model.protocol_results import HeapWork
from cachemark.runs.tapes import Tape
from cachemark.runs.trials.callers import callers_of, demand_of
from cachemark.runs.trials.prefill import run_prefill

# The server of all passes: only blocking connections have a log of their traffic.
_SERVER = "embedded:io=blocking"
_TIMEOUT_MS = 30_000
_READY_S = 60.0
_WATCH = RunMonitor(progress=lambda _ops: None, silence_timeout_s=120)


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of operation, and a tape of this kind alone.

    `longer` is the same with longer values; None if the values have no one size.
    """

    kind: str
    workload: Workload
    load: Load
    tape: Tape
    longer: Work | None = None


class CountingPlace(msgspec.Struct, frozen=True, kw_only=True):
    """The place of play: the CPUs of both sides (empty: any), and a folder for logs."""

    server_cpus: str
    worker_cpus: str
    folder: Path


def server_of(client: ClientSpec) -> ServerSpec:
    """The server of a client's passes; a cache in its process has none."""
    return parse_spec("none" if client.client.in_process else _SERVER)


class CountingPlayer:
    """One worker of a client, with one caller.

    `allocations` is the file of the allocator that counts, if the worker has one. `ready_s`: it
    answers, and prepares its work, within this time.
    """

    def __init__(
        self, client: ClientSpec, fleet: Fleet, allocations: Path | None, ready_s: float
    ) -> None:
        self.client = client
        self.fleet = fleet
        self.ready = fleet.hello(ready_s)
        self._allocations = allocations
        self._ready_s = ready_s

    def lacking(self, work: Work, server: RunningServer) -> str:
        """The reason why the client cannot play this work; empty if it can."""
        try:
            self._request(work, server)
        except UnsupportedError as error:
            return error.text
        return ""

    def prepare(self, work: Work, server: RunningServer) -> None:
        """Connect, and store the keys. Raises TrialError, UnsupportedError."""
        self.fleet.prepare(self._request(work, server), self._ready_s)
        run_prefill(lambda: self.fleet.run(RunRequest(phase="prefill"), _WATCH))

    def _request(self, work: Work, server: RunningServer) -> Prepare:
        """The message that prepares the worker. Raises UnsupportedError."""
        spec, load = self.client, work.load
        threads, connections, _ = callers_of(load, spec.client.concurrency, self.ready)
        request = Prepare(
            servers=server.addresses,
            wire=select_wire(load, self.ready),
            threads=threads,
            connections=connections,
            tape=str(work.tape.path),
            timeout_ms=_TIMEOUT_MS,
            options={
                **options_for(server.facts.quirks, self.ready.capabilities, spec.client.id),
                **spec.options,
            },
        )
        demand = demand_of(request, work.workload, load, slices=False)
        if lacking := unclaimed(demand, self.ready):
            raise UnsupportedError(lacking)
        return request

    def play(self, ops: int, *, heap: bool = False) -> Done:
        """Play `ops` operations, all of which must succeed. Raises TrialError.

        With `heap`, the worker reads the counters of its runtime before and after; the allocator's
        are read in any case.
        """
        before = self._allocated()
        done = self._play(RunRequest(phase="measure", ops=ops, heap=heap))
        if not self._allocations:
            return done
        allocations, size = map(sub, self._allocated(), before)
        counted = HeapWork(allocations=allocations, allocated_bytes=size)
        return msgspec.structs.replace(done, heap=counted)

    def _allocated(self) -> tuple[int, ...]:
        return unpack("@QQ", self._allocations.read_bytes()) if self._allocations else ()

    def play_for(self, length_ms: int) -> Done:
        """Play for this time; all operations must succeed. Raises TrialError."""
        return self._play(RunRequest(phase="measure", duration_ms=length_ms))

    def _play(self, request: RunRequest) -> Done:
        done = self.fleet.run(request, _WATCH)
        _check(done)
        return done


@contextmanager
def playing(
    client: ClientSpec,
    cpus: str,
    wrapped: Callable[[list[str]], Sequence[str]] = list,
    *,
    variables: Mapping[str, object] | None = None,
    allocations: Path | None = None,
    ready_s: float = _READY_S,
) -> Generator[CountingPlayer]:
    """Start a worker of a client on these CPUs; another program may be wrapped around its command.

    `variables` are added to its environment. `allocations` and `ready_s` as in
    `CountingPlayer`. Raises TrialError, UnsupportedError.
    """
    client.client.require()
    settings = [f"{name}={value}" for name, value in (variables or {}).items()]
    command = ["env", *settings, *client.client.command] if settings else client.client.command
    with Fleet(list(wrapped(command)), 1, cpus=cpus, name=client.client.id) as fleet:
        yield CountingPlayer(client, fleet, allocations, ready_s)
        fleet.bye()


def _check(done: Done) -> None:
    for kind, each in done.operations.items():
        if each.ok != each.attempts:
            words = ", ".join(f"{count} × {error}" for error, count in each.errors.items())
            raise TrialError(
                f"{each.attempts - each.ok} of {each.attempts} operations {kind} failed: "
                f"{words or 'wrong values'}"
            )
