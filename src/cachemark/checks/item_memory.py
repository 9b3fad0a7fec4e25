"""How much memory an item needs: fills a server until it evicts, once for each value size.

Nothing is timed, so this module sends the stores itself, without a worker.
"""

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np

from cachemark.endpoints.probe import EVERYTHING
from cachemark.endpoints.probe.checks import check_storing, split_segments
from cachemark.endpoints.probe.dialogue import ProbedServer
from cachemark.endpoints.probe.raw_connection import AnswerError, RawConnection
from cachemark.endpoints.servers import RunningServer, ServerSpec, running_unencrypted
from cachemark.host.engine_output import write_tape
from cachemark.host.temporary import temporary_folder
from cachemark.model.errors import TrialError, UnsupportedError, UsageError
from cachemark.model.footprint import Footprint
from cachemark.model.server_memory import Fill
from cachemark.model.tape_header import read_header

# Lengths to draw before they repeat.
_MAX_DRAWN = 100_000
_PREFIX = b"cachemark-"
_PLAIN_DIGITS = 10
KEY_BYTES = 20
# The server is checked after each such fraction of its limit: the error of the fill.
_STEP = 0.002
_BATCH_BYTES = 1 << 18
# A server must be full at 1.5 × its limit; without a limit, at this size.
_MAX_FILL = 1.5
_MAX_BYTES = 1 << 30
_POOL_BYTES = 1 << 20
_PROGRESS_STEPS = 20
# The longest answer: a line, such as an error, and the lines around a value.
_LINES_BYTES = 1024


def fill(spec: ServerSpec, value_bytes: int) -> Fill:
    """Start a server and fill it. A failure is not raised, but stored in `Fill.reason`."""
    return fill_shapes(spec, fixed_shapes(value_bytes, KEY_BYTES))


def fill_shapes(spec: ServerSpec, shapes: "ItemShapes") -> Fill:
    """The same with items of these shapes."""
    try:
        with running_unencrypted(spec) as server:
            if len(server.addresses) != 1 or server.facts.kind == "remote":
                raise UnsupportedError("only a single server that cachemark starts can be filled")
            return _fill_running(server, spec.text, shapes)
    except TrialError as error:
        value_bytes = round(shapes.mean_value_bytes)
        return Fill(
            server=spec.text, value_bytes=value_bytes, key_bytes=KEY_BYTES, reason=error.text
        )


def filled(server: RunningServer, name: str, value_bytes: int) -> Fill:
    """Fill a running, empty server. Raises TrialError."""
    return _fill_running(server, name, fixed_shapes(value_bytes, KEY_BYTES))


def _fill_running(server: RunningServer, name: str, shapes: "ItemShapes") -> Fill:
    try:
        return _filled(server, name, shapes)
    except AnswerError as error:
        raise TrialError(f"while it was filled: {error}") from error


def _filled(server: RunningServer, name: str, shapes: "ItemShapes") -> Fill:
    empty = server.use()
    storing, probed = check_storing(server.addresses[0])
    if EVERYTHING in storing.excludes:
        raise TrialError(f"nothing can be stored: {storing.seen}")
    limit = server.stats().number("limit_maxbytes")
    filler = Filler(probed, shapes)
    ended = filler.run(server, limit)
    stats, full = server.stats(), server.use()
    # Not curr_items: some servers update it only now and then.
    items = filler.stored - (stats.number("evictions") or filler.gone)
    return Fill(
        server=name,
        version=server.facts.version,
        value_bytes=round(shapes.mean_value_bytes),
        key_bytes=round(shapes.mean_bytes - shapes.mean_value_bytes),
        items=items,
        limit_bytes=limit,
        ended=ended,
        footprint=Footprint(
            user_bytes=shapes.data_bytes(items),
            reported_bytes=stats.number("bytes"),
            rss_bytes=full.rss_bytes if full else None,
            rss_empty_bytes=empty.rss_bytes if empty else None,
        ),
    )


class Filler:
    """Stores items, each with a new key."""

    def __init__(self, probed: ProbedServer, shapes: "ItemShapes") -> None:
        self.stored = self.gone = 0
        self._subject = probed
        self._shapes = shapes
        self._batch = batch(probed, round(shapes.mean_value_bytes))
        largest = max(shapes.value_bytes)
        self._pool = random.Random(largest).randbytes(_POOL_BYTES + largest)

    def store_all(self, count: int, progress: Callable[[int], None]) -> str:
        """Store items until there are `count`; returns an error reply, if there was one."""
        with self._subject.connection() as connection:
            while self.stored < count:
                progress(self.stored)
                step = min(count - self.stored, max(1, count // _PROGRESS_STEPS))
                if refused := self._store(connection, step):
                    return refused
        return ""

    def run(self, server: RunningServer, limit: int | None) -> str:
        """Store items until the server is full; returns the sign of that.

        Raises AnswerError, TrialError.
        """
        each = self._shapes.mean_bytes
        most = _MAX_FILL * limit if limit else _MAX_BYTES
        step = max(1, int(_STEP * (limit or _MAX_BYTES) / each))
        with self._subject.connection() as connection:
            self._store(connection, 1)
            checked = 0
            while self.stored * each < most:
                if refused := self._store(connection, step):
                    return f"a store was answered {refused}"
                if server.stats().number("evictions"):
                    return "it evicted"
                # Each item is read only once: a read makes it the newest in an LRU list.
                if not self._holds(connection, checked):
                    oldest = range(min(checked + 2 * step, self.stored))
                    self.gone = sum(not self._holds(connection, number) for number in oldest)
                    return "the oldest items were gone"
                checked += 1
        raise TrialError(f"it took {most / 2**20:,.0f} MiB without an eviction")

    def _store(self, connection: RawConnection, count: int) -> str:
        """Store `count` items; stops at an error reply and returns it."""
        end = self.stored + count
        while self.stored < end:
            batch = range(self.stored, min(self.stored + self._batch, end))
            connection.send(b"".join(map(self._set, batch)))
            lines = rb"((STORED|SERVER_ERROR[^\r]*)\r\n){%d}" % len(batch)
            answer = connection.expect(lines, _LINES_BYTES * len(batch))[0]
            if b"SERVER_ERROR" in answer:
                return (
                    answer[answer.index(b"SERVER_ERROR") :]
                    .partition(b"\r")[0]
                    .decode("utf-8", "replace")
                )
            self.stored += len(batch)
        return ""

    def _set(self, number: int) -> bytes:
        start = number * 4093 % _POOL_BYTES
        value = self._pool[start : start + self._shapes.value_size(number)]
        key, space = self._shapes.key(number), self._subject.space
        return b"set %s 0 0 %d%s\r\n%s\r\n" % (key, len(value), space, value)

    def _holds(self, connection: RawConnection, number: int) -> bool:
        hit = rb"VALUE [^\r]+\r\n.{%d}\r\n" % self._shapes.value_size(number)
        answer = connection.ask(
            b"get %s\r\n" % self._shapes.key(number),
            rb"(%s)?END\r\n" % hit,
            self._shapes.value_size(number) + _LINES_BYTES,
        )
        return answer[0] != b"END\r\n"


def batch(probed: ProbedServer, value_bytes: int) -> int:
    """The number of pipelined stores: 1 if the server stalls on pipelined requests."""
    stalls = split_segments(probed).fit is False
    return 1 if stalls else max(1, _BATCH_BYTES // (KEY_BYTES + value_bytes))


def fills(
    specs: Sequence[ServerSpec], sizes: Sequence[int], progress: Callable[[str], None]
) -> list[Fill]:
    """Fill a new server for every combination of server and size."""
    results: list[Fill] = []
    for spec in specs:
        for size in sizes:
            progress(f"{spec.text}: filling with values of {size:,} B")
            results.append(fill(spec, size))
    return results


class ItemShapes(msgspec.Struct, frozen=True, kw_only=True):
    """The length of each item's key and the size of its value, in bytes, repeated."""

    key_bytes: list[int]
    value_bytes: list[int]

    @property
    def mean_bytes(self) -> float:
        """Key and value of an item, on average."""
        return sum(self.key_bytes) / len(self.key_bytes) + self.mean_value_bytes

    @property
    def mean_value_bytes(self) -> float:
        """The value of an item, on average."""
        return sum(self.value_bytes) / len(self.value_bytes)

    def value_size(self, number: int) -> int:
        """The size of an item's value."""
        return self.value_bytes[number % len(self.value_bytes)]

    def key(self, number: int) -> bytes:
        """The key of an item, which no other item has."""
        length = self.key_bytes[number % len(self.key_bytes)]
        if length < len(_PREFIX) + _PLAIN_DIGITS:
            return b"%0*d" % (length, number)
        return _PREFIX + b"%0*d" % (length - len(_PREFIX), number)

    def data_bytes(self, items: int) -> int:
        """The bytes of the keys and values of the first items."""
        whole, rest = divmod(items, len(self.key_bytes))
        sizes = [key + value for key, value in zip(self.key_bytes, self.value_bytes, strict=True)]
        return whole * sum(sizes) + sum(sizes[:rest])


def fixed_shapes(value_bytes: int, key_bytes: int = 20) -> ItemShapes:
    """Items that are all alike."""
    return ItemShapes(key_bytes=[key_bytes], value_bytes=[value_bytes])


def drawn_shapes(items: int, size: str, key_length: str) -> ItemShapes:
    """Items whose lengths follow the texts of --size and --key-length. Raises UsageError."""
    with temporary_folder() as folder:
        path = folder / "tape"
        words = ["--keys", str(min(items, _MAX_DRAWN)), "--ops", "1", "--mix", "set=1"]
        write_tape(path, *words, "--size", size, "--key-length", key_length)
        shapes = _of_tape(path)
    shortest = min(shapes.key_bytes)
    if shortest < len(str(items)):
        raise UsageError(
            f"--key-length {key_length}: {shortest} bytes are too short for {items:,} keys",
            f"at least {len(str(items))}",
        )
    return shapes


def _of_tape(path: Path) -> ItemShapes:
    header = read_header(path)
    count = header.key_count
    lengths = np.memmap(path, dtype="<u4", mode="r", offset=header.lengths_at, shape=(count,))
    ends = np.memmap(path, dtype="<u4", mode="r", offset=header.key_offsets_at, shape=(count + 1,))
    return ItemShapes(key_bytes=np.diff(ends).tolist(), value_bytes=lengths.tolist())
