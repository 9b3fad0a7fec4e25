"""An objective for the response time, such as `p99<1ms`, for the search for the highest rate."""

from __future__ import annotations

import re

import msgspec

from cachemark.model.errors import UsageError
from cachemark.model.units import NS

_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_OBJECTIVE = re.compile(rf"p({_NUMBER})\s*<\s*({_NUMBER})\s?({'|'.join(NS)})")
EXAMPLE = "p99<1ms"


class Objective(msgspec.Struct, frozen=True, kw_only=True):
    """A percentile of the response time, and the time that it has to stay below."""

    percent: float
    below_ns: int

    @property
    def percentile(self) -> str:
        """Such as `p99.9`."""
        return f"p{self.percent:g}"


def parse_objective(text: str, place: str) -> Objective:
    """Read an objective. Raises UsageError; `place` is where it was written."""
    match = _OBJECTIVE.fullmatch(text.strip())
    percent = float(match[1]) if match else 0.0
    if match is None or not 0 < percent < 100:
        raise UsageError(f"{place}: {text!r} is no objective", f"write {EXAMPLE} or p99.9<500us")
    return Objective(percent=percent, below_ns=round(float(match[2]) * NS[match[3]]))
