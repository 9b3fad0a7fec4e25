"""Checks a client's levels: each is played once, apart from the trials, and watched."""

from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager, suppress

import msgspec

from cachemark.endpoints.capabilities import select_wire
from cachemark.endpoints.clients import ClientSpec
from cachemark.endpoints.fleet import Fleet, RunMonitor
from cachemark.endpoints.probe.observation import RecordingRelay, threads_with
from cachemark.endpoints.probe.raw_connection import AnswerError
from cachemark.endpoints.servers import RunningServer, ServerSpec, options_for, running_unencrypted
from cachemark.model import factors
from cachemark.model.errors import TrialError, UnsupportedWireError
from cachemark.model.experiment import Keys, Load, Timing, Workload
from cachemark.model.factors import Proof
from cachemark.model.protocol import Done, Prepare, RunRequest
from cachemark.runs.audit.claims import COMPRESSION, LOCAL_CACHE, REPLIES, THREADS, WIRE, Claim
from cachemark.runs.tapes import Tape, TapeCache

# A blocking server has a thread for each; fewer could be the threads that it has anyway.
_CONNECTIONS = 20
_OPS = 20
# Beside this many stores the bytes of `stats` itself, which the server counts too, are few.
_QUIET_KEYS = 2000
_ITEMS = 100
# An open loop's tape may have its operations far apart.
_LONGEST_MS = 3000


class _FailedError(TrialError):
    """Operations failed."""


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """A prepared cell of a claim; `quirks` are the server's quirks that were found."""

    client: ClientSpec
    server: ServerSpec
    workload: Workload
    load: Load
    timing: Timing
    tapes: TapeCache
    tape_seed: int
    quirks: list[str] = []

    def tape(self, workload: Workload) -> Tape:
        """The tape of the cell, but with this workload."""
        return self.tapes.get(workload, self.load, self.timing, self.tape_seed)


def prove(claim: Claim, scene: Scene) -> Proof:
    """Play the claim. If a client or a server fails, the answer is `unknown`.

    Raises UnsupportedWireError if the client does not speak the protocol: there is no such level.
    """
    try:
        return _PROOFS[claim.factor](claim, scene)
    except UnsupportedWireError:
        raise
    except TrialError as error:
        why = error.text
    except AnswerError as error:
        why = str(error)
    return Proof(factor=claim.factor, level=claim.level, answer="unknown", evidence=why)


def _threads(claim: Claim, scene: Scene) -> Proof:
    with running_unencrypted(scene.server) as server:
        seen = threads_with(server, _CONNECTIONS)
    if seen is None:
        raise TrialError("the server's process cannot be seen")
    return factors.server_threads(claim.level, _CONNECTIONS, *seen)


def _wire(claim: Claim, scene: Scene) -> Proof:
    tape = scene.tape(scene.workload)
    with running_unencrypted(scene.server) as server, ExitStack() as relays:
        relayed = (closing(RecordingRelay(address)) for address in server.addresses)
        watched = [relays.enter_context(relay) for relay in relayed]
        addresses = [relay.address for relay in watched]
        # The first byte shows the wire, even if the operations fail.
        with _client(scene, server, addresses, tape) as fleet, suppress(_FailedError):
            _play(fleet, RunRequest(phase="warmup", ops=_OPS, duration_ms=_LONGEST_MS), scene)
        return factors.wire(claim.level, [bytes(s) for relay in watched for s in relay.streams])


def _compression(claim: Claim, scene: Scene) -> Proof:
    if not scene.workload.values.compressibility:
        raise TrialError("these values do not compress, so both levels store the same")
    few = Workload(
        name="stored",
        mix={"get": 1},
        keys=Keys(count=_ITEMS, length="20"),
        values=scene.workload.values,
        records=_ITEMS,
    )
    with running_unencrypted(scene.server) as server:
        with _client(scene, server, server.addresses, scene.tape(few)) as fleet:
            before = server.stats()
            done = _play(fleet, RunRequest(phase="prefill"), scene)
            after = server.stats()
        stored = sum(op.value_bytes for op in done.operations.values())
        items = sum(op.keys for op in done.operations.values())
        return factors.compression(claim.level, stored, items, before, after)


def _local_cache(claim: Claim, scene: Scene) -> Proof:
    twice = Workload(
        name="twice",
        sequence=["get@0", "get@0"],
        key_step=1,
        keys=Keys(count=_OPS, length="20"),
        values=scene.workload.values,
        records=2 * _OPS,
    )
    with (
        running_unencrypted(scene.server) as server,
        _client(scene, server, server.addresses, scene.tape(twice)) as fleet,
    ):
        _play(fleet, RunRequest(phase="prefill"), scene)
        before = server.stats()
        done = _play(
            fleet, RunRequest(phase="measure", ops=2 * _OPS, duration_ms=_LONGEST_MS), scene
        )
        read = sum(op.keys for op in done.operations.values())
        return factors.local_cache(claim.level, read, before, server.stats())


def _replies(claim: Claim, scene: Scene) -> Proof:
    each = scene.workload.run if claim.level.startswith("mset") else 1
    quiet = msgspec.structs.replace(
        scene.workload,
        mix={claim.level: 1},
        sequence=[],
        key_step=0,
        keys=Keys(count=max(each, _QUIET_KEYS), distribution="sequential"),
        records=_QUIET_KEYS,
        prefill=0.0,
        ops=None,
        fill_percent=None,
    )
    with (
        running_unencrypted(scene.server) as server,
        _client(scene, server, server.addresses, scene.tape(quiet)) as fleet,
    ):
        # Each answer to `stats` is bytes that the server wrote, too.
        earlier, before = server.stats(), server.stats()
        ops = max(1, _QUIET_KEYS // each)
        done = _play(fleet, RunRequest(phase="warmup", ops=ops, duration_ms=_LONGEST_MS), scene)
        stored = sum(op.keys for op in done.operations.values())
        answer = before.delta(earlier, "bytes_written")
        written = server.stats().delta(before, "bytes_written")
        written = None if answer is None or written is None else max(0, written - answer)
        proof = factors.replies("noreply", stored, written)
    return msgspec.structs.replace(proof, level=claim.level)


@contextmanager
def _client(
    scene: Scene, server: RunningServer, addresses: list[str], tape: Tape
) -> Generator[Fleet]:
    """One worker with one connection that is prepared. Raises TrialError, UnsupportedError."""
    client = scene.client.client
    client.require()
    ready_s = scene.timing.ready_ms / 1e3
    with Fleet(client.command, 1, cpus="", name=client.id) as fleet:
        ready = fleet.hello(ready_s)
        options = options_for([*server.facts.quirks, *scene.quirks], ready.capabilities, client.id)
        request = Prepare(
            servers=addresses,
            wire=select_wire(scene.load, ready),
            tape=str(tape.path),
            timeout_ms=scene.timing.timeout_ms,
            options={**options, **_bare(scene.client.options)},
        )
        fleet.prepare(request, ready_s)
        yield fleet
        fleet.bye()


def _bare(options: dict[str, str]) -> dict[str, str]:
    """Without TLS, so that a proxy can read the bytes, and without new connections' own bytes."""
    left_out = ("tls", "reconnect_after")
    return {name: value for name, value in options.items() if not name.startswith(left_out)}


def _play(fleet: Fleet, request: RunRequest, scene: Scene) -> Done:
    """Play a phase. Raises TrialError, and _FailedError if an operation that was begun failed."""
    silence_s = scene.timing.silence_ms / 1e3
    done = fleet.run(request, RunMonitor(progress=lambda _: None, silence_timeout_s=silence_s))
    failed = sum(op.attempts - op.ok for op in done.operations.values())
    if failed:
        raise _FailedError(f"{failed} operations failed, so the level is unknown")
    return done


_PROOFS = {
    WIRE: _wire,
    THREADS: _threads,
    COMPRESSION: _compression,
    LOCAL_CACHE: _local_cache,
    REPLIES: _replies,
}
