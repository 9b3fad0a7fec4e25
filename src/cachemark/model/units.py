"""Numbers with units, as people type them: `5M` is a count, `64k` a size in bytes, `10s` a time.

The engine (`options/units.rs`) has the same grammar: decimal factors for counts, binary factors for
bytes. `tests/model/test_units.py` compares the two.
"""

import datetime
import re
from fractions import Fraction

from cachemark.model.errors import UsageError

_COUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s?([kKmMgG])?")
# Python refuses to read numbers of more than 4300 digits.
_SIZE = re.compile(r"([0-9]{1,30})(?:([kKmMgG])(?:[iI]?[bB])?)?")
_POWER = {"": 0, "k": 1, "m": 2, "g": 3}
_MOST = 2**53
# The units of a time, in ns.
NS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9}
_TIME = re.compile(rf"([0-9]+(?:\.[0-9]+)?)\s?({'|'.join(NS)})")
MIB = 2**20


def parse_count(text: str, place: str) -> int:
    """A whole number of at least 1: `1000`, `10k` (10,000) or `1.5M`. Raises UsageError."""
    match = _COUNT.fullmatch(text.strip())
    number = Fraction(match[1]) * 1000 ** _power(match[2]) if match else 0
    if number < 1 or number > _MOST or number != int(number):
        raise UsageError(f"{place}: {text!r} is no count", "write 1000, 10k or 1.5M")
    return int(number)


def parse_ms(text: str, place: str) -> int:
    """A time in whole milliseconds: `500ms`, `10s` or `2m`. Raises UsageError."""
    match = _TIME.fullmatch(text.strip())
    ms = Fraction(match[1]) * NS[match[2]] / 10**6 if match else -1
    if not 0 <= ms <= _MOST or ms != int(ms):
        raise UsageError(f"{place}: {text!r} is no time", "write 500ms, 10s or 2m")
    return int(ms)


def parse_ns(text: str, place: str) -> int:
    """A time in nanoseconds: `100us`, `0.5ms` or `1s`. Raises UsageError."""
    match = _TIME.fullmatch(text.strip())
    if not match:
        raise UsageError(f"{place}: {text!r} is no time", "write 100us, 0.5ms or 1s")
    return round(float(match[1]) * NS[match[2]])


def parse_size(text: str, place: str) -> int:
    """A number of bytes of at least 1: `100`, `64k` (65,536) or `200m`. Raises UsageError."""
    match = _SIZE.fullmatch(text.strip())
    number = int(match[1]) * 1024 ** _power(match[2]) if match else 0
    if not 1 <= number <= _MOST:
        raise UsageError(f"{place}: {text!r} is no size", "write 1048576, 512k, 64m or 1g")
    return number


def parse_memory(text: str, place: str) -> int:
    """A server's memory in bytes: `200m`, `2g`; a bare number is MiB, as memcached's -m.

    Raises UsageError.
    """
    bare = text.strip().isdecimal()
    try:
        return parse_size(f"{text.strip()}m" if bare else text, place)
    except UsageError:
        remedy = "write 64m or 2g; a number alone is MiB"
        raise UsageError(f"{place}: {text!r} is no size", remedy) from None


def _power(suffix: str | None) -> int:
    return _POWER[(suffix or "").lower()]


def instant_text(unix_ns: int) -> str:
    """An instant in ISO 8601, to the millisecond, as outcomes keep it.

    >>> instant_text(1_795_343_829_098_000_000)
    '2026-11-22T10:37:09.098+00:00'
    """
    instant = datetime.datetime.fromtimestamp(unix_ns / 1e9, datetime.UTC)
    return instant.isoformat(timespec="milliseconds")


def version_numbers(version: str) -> list[int]:
    """The numbers of a version such as `1.6.45`; none if it has none."""
    return [int(number) for number in re.findall(r"[0-9]{1,9}", version)]


def plain(figure: float) -> str:
    """A figure in three digits or all whole ones, without an exponent.

    >>> plain(2604.2), plain(4.776), plain(0.08)
    ('2,604', '4.78', '0.08')
    """
    return f"{figure:,.0f}" if abs(figure) >= 999.5 else f"{figure:.3g}"
