"""The levels that an experiment claims: wires, ways of I/O, compression, local caches, replies.

Only named levels are claims; the own behaviour of a library or a server is no level of a factor.
"""

from collections.abc import Callable, Iterator, Mapping

import msgspec

from cachemark.endpoints.clients import ClientSpec
from cachemark.endpoints.servers import ServerSpec, io_mode
from cachemark.model.experiment import Load, Workload
from cachemark.model.outcome import Cell
from cachemark.model.plan import NO_SERVER, Plan

WIRE, THREADS, COMPRESSION = "wire", "server threads", "compression"
LOCAL_CACHE, REPLIES = "local cache", "replies"
# Options of clients, all over the workers.
_OPTIONS = {COMPRESSION: "compression", LOCAL_CACHE: "local_cache"}


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A level of a factor that a `subject` claims to play, and the cells that need it."""

    factor: str
    level: str
    subject: str
    cells: list[Cell]


class _Place(msgspec.Struct, frozen=True, kw_only=True):
    """A cell with its client, server, workload and load."""

    cell: Cell
    client: ClientSpec
    server: ServerSpec
    workload: Workload
    load: Load


Named = tuple[str, str]
_Claimed = Callable[[_Place], Named | None]


def claims(
    plan: Plan, clients: Mapping[str, ClientSpec], servers: Mapping[str, ServerSpec]
) -> list[Claim]:
    """Every level that is named, once. Pure."""
    places = [
        _Place(
            cell=cell,
            client=clients[cell.client],
            server=servers[cell.server],
            workload=plan.workload(cell),
            load=plan.load(cell),
        )
        for cell in plan.playable
        if cell.server != NO_SERVER
    ]
    return [claim for factor, claimed in _FACTORS.items() for claim in _of(factor, claimed, places)]


def _of(factor: str, claimed: _Claimed, places: list[_Place]) -> Iterator[Claim]:
    by_level: dict[Named, list[Cell]] = {}
    for place in places:
        named = claimed(place)
        if named is not None:
            by_level.setdefault(named, []).append(place.cell)
    for (level, subject), of in by_level.items():
        yield Claim(factor=factor, level=level, subject=subject, cells=of)


def _wire(place: _Place) -> Named | None:
    return None if place.load.wire == "own" else (place.load.wire, place.client.text)


def _threads(place: _Place) -> Named | None:
    mode = io_mode(place.server)
    return (mode, place.server.text) if mode else None


def _compression(place: _Place) -> Named | None:
    level = place.client.options.get(_OPTIONS[COMPRESSION])
    values = place.workload.values
    shape = f"values of {values.size} bytes, compressible to {1 - values.compressibility:.0%}"
    return (level, f"{place.client.text}, {shape}") if level else None


def sends_as_on_tape(client: ClientSpec) -> bool:
    """Whether the bytes of keys and values reach the server as the tape has them.

    A library's own settings, or those that its documents recommend, may serialise and compress.
    """
    return client.options.get("profile", "common") == "common" and not (
        client.options.keys() & set(_OPTIONS.values())
    )


def _local_cache(place: _Place) -> Named | None:
    level = place.client.options.get(_OPTIONS[LOCAL_CACHE])
    return (level, place.client.text) if level else None


def _replies(place: _Place) -> Named | None:
    quiet = sorted(kind for kind in place.workload.kinds if kind in QUIET_STORES)
    return (quiet[0], place.client.text) if quiet else None


# Without replies. Replies to delete and incr are too short: no counter would show that they are
# missing.
QUIET_STORES = frozenset({"set_noreply", "mset_noreply"})


def needed_kinds(workload: Workload) -> set[str]:
    """The operations that a trial of a workload plays: its own, and the stores of a prefill.

    Of a trace, only those that its way of playing needs.
    """
    aside = {"fetch"} if workload.trace_gets == "cache-aside" else set()
    return workload.kinds | ({"set"} if workload.prefill else set()) | aside


_FACTORS: dict[str, _Claimed] = {
    WIRE: _wire,
    THREADS: _threads,
    COMPRESSION: _compression,
    LOCAL_CACHE: _local_cache,
    REPLIES: _replies,
}
