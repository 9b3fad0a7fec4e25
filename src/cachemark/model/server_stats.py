"""What a memcached server answers to `stats`: names and texts, most of them counters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

# Whole numbers in a general `stats` that are no amounts: their sum would say nothing.
_NO_AMOUNTS = frozenset(
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
        """A counter or an amount; None where the server does not report it as a whole number."""
        value = self._values.get(name, "")
        return int(value) if _WHOLE.fullmatch(value) else None

    def delta(self, before: ServerStats, name: str) -> int | None:
        """By how much a number has risen since `before`; None where either reading lacks it."""
        then, now = before.number(name), self.number(name)
        return None if then is None or now is None else now - then


def total(readings: Sequence[ServerStats]) -> ServerStats:
    """The readings of several servers as those of one.

    An amount is the sum, and absent where one server does not report it: a part of a sum is no
    sum. What is no amount stays where all servers say the same.
    """
    if len(readings) == 1:
        return readings[0]
    first = readings[0] if readings else ServerStats()
    shared = [name for name in first if all(name in reading for reading in readings)]
    merged = {name: _merged(name, [reading[name] for reading in readings]) for name in shared}
    return ServerStats({name: value for name, value in merged.items() if value is not None})


def _merged(name: str, values: list[str]) -> str | None:
    if name not in _NO_AMOUNTS:
        try:
            return str(sum(map(int, values)))
        except ValueError:
            pass
    return values[0] if len(set(values)) == 1 else None
