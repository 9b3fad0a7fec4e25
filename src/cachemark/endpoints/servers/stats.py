"""`stats` of several servers as those of one: counters are added, nothing is averaged. Pure."""

from __future__ import annotations

from collections.abc import Sequence

# Whole numbers in a general `stats` that are no amounts: their sum would say nothing.
_NO_AMOUNTS = frozenset(
    {"pid", "uptime", "time", "pointer_size", "hash_power_level", "time_since_server_start"}
)


def total(of: Sequence[dict[str, str]]) -> dict[str, str]:
    """The `stats` of all as one.

    An amount is the sum, and absent where one server does not tell it: a part of a sum is no sum.
    What is no amount stays where all say the same.
    """
    if len(of) == 1:
        return of[0]
    names = [name for name in (of[0] if of else {}) if all(name in stats for stats in of)]
    told = {name: _one(name, [stats[name] for stats in of]) for name in names}
    return {name: value for name, value in told.items() if value is not None}


def _one(name: str, values: list[str]) -> str | None:
    if name not in _NO_AMOUNTS:
        try:
            return str(sum(map(int, values)))
        except ValueError:
            pass
    return values[0] if len(set(values)) == 1 else None
