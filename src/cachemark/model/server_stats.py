"""The reply of a memcached server to `stats`: names and texts, most of them counters."""

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

# Integers in `stats` whose sum over several servers has no meaning.
_NOT_ADDITIVE = frozenset(
    {"pid", "uptime", "time", "pointer_size", "hash_power_level", "time_since_server_start"}
)

_WHOLE = re.compile(r"[0-9]{1,30}")


class ServerStats(Mapping[str, str]):
    """One reading of a server's `stats`, by name. Frozen; empty for a server that has none."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values = dict(values or {})

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"ServerStats({self._values!r})"

    def number(self, name: str) -> int | None:
        """A value as an integer; None if the server does not report it, or not as an integer."""
        value = self._values.get(name, "")
        return int(value) if _WHOLE.fullmatch(value) else None

    def delta(self, before: "ServerStats", name: str) -> int | None:
        """The increase of a number since `before`; None if it is missing in one of the readings."""
        then, now = before.number(name), self.number(name)
        return None if then is None or now is None else now - then


def merge_stats(readings: Sequence[ServerStats]) -> ServerStats:
    """Merge the readings of several servers into one.

    A counter is the sum, and left out if one server does not report it. Any other value is kept
    only if all servers report the same.
    """
    if len(readings) == 1:
        return readings[0]
    first = readings[0] if readings else ServerStats()
    shared = [name for name in first if all(name in reading for reading in readings)]
    merged = {name: _merge_values(name, [reading[name] for reading in readings]) for name in shared}
    return ServerStats({name: value for name, value in merged.items() if value is not None})


def _merge_values(name: str, values: list[str]) -> str | None:
    if name not in _NOT_ADDITIVE:
        try:
            return str(sum(map(int, values)))
        except ValueError:
            pass
    return values[0] if len(set(values)) == 1 else None


class ServerLoad(msgspec.Struct, frozen=True, kw_only=True):
    """One of several servers: its commands in a window, and the items that it held at the end.

    `items` is None if the server does not report it.
    """

    commands: int
    items: int | None


class SlabClass(msgspec.Struct, frozen=True, kw_only=True):
    """The items of one size class of the servers after a window; evictions since their start."""

    chunk_bytes: int
    items: int
    memory_bytes: int
    evictions: int
