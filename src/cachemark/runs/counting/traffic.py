"""A client's traffic as the embedded server saw it: pieces, segments, bytes, connections."""

from collections.abc import Callable, Sequence
from operator import attrgetter

import msgspec

from cachemark.endpoints.clients import ClientSpec
from cachemark.endpoints.servers import running
from cachemark.model.counts import Counts
from cachemark.model.errors import DECODE_ERRORS, TrialError
from cachemark.model.protocol_results import attempts_of
from cachemark.runs.counting.player import CountingPlace, CountingPlayer, Work, playing, server_of

_OPS = 100


class _Segments(msgspec.Struct, frozen=True, kw_only=True):
    data_in: int
    data_out: int
    all_in: int
    retransmitted: int


class _Connection(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the log of `cachemark-engine serve --traffic-log`."""

    turns: int
    reads: int
    bytes_in: int
    bytes_out: int
    gaps_ns: int
    segments: _Segments | None


def count_traffic(
    client: ClientSpec, works: Sequence[Work], place: CountingPlace
) -> dict[str, Counts]:
    """The pieces, segments and bytes of one operation of each work, by its kind.

    Raises TrialError, UnsupportedError.
    """
    with playing(client, place.worker_cpus) as player:
        return {work.kind: _count(player, work, place) for work in works}


def _count(player: CountingPlayer, work: Work, place: CountingPlace) -> Counts:
    short_ops, short = _play(player, work, _OPS, place)
    long_ops, long = _play(player, work, 2 * _OPS, place)
    return _between(short, long, long_ops - short_ops)


def _play(
    player: CountingPlayer, work: Work, ops: int, place: CountingPlace
) -> tuple[int, list[_Connection]]:
    """Play against a server of its own; the number of operations, and all its connections."""
    log = place.folder / "traffic"
    log.unlink(missing_ok=True)
    spec = server_of(player.client)
    observed = msgspec.structs.replace(spec, options={**spec.options, "traffic_log": str(log)})
    with running(observed, cpus=place.server_cpus) as server:
        player.prepare(work, server)
        done = player.play(ops)
    try:
        lines = log.read_bytes()
        return attempts_of(done.operations), msgspec.json.Decoder(_Connection).decode_lines(lines)
    except (OSError, *DECODE_ERRORS) as error:
        raise TrialError(f"the server's log of its traffic: {error}") from error


def _between(short: Sequence[_Connection], long: Sequence[_Connection], ops: int) -> Counts:
    def difference(of: Callable[[_Connection], int]) -> float:
        return (sum(map(of, long)) - sum(map(of, short))) / ops

    def of(name: str) -> float:
        return difference(attrgetter(name))

    def of_segments(name: str) -> float:
        return difference(lambda each: getattr(each.segments, name) if each.segments else 0)

    return Counts(
        connections=(len(long) - len(short)) / ops,
        turns=of("turns"),
        pieces=of("reads"),
        gap_us=of("gaps_ns") / 1e3,
        bytes_in=of("bytes_in"),
        bytes_out=of("bytes_out"),
        segments_in=of_segments("data_in"),
        segments_out=of_segments("data_out"),
        acknowledgements=of_segments("all_in") - of_segments("data_in"),
        retransmitted=of_segments("retransmitted"),
    )
