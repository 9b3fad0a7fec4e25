"""Limits for figures of the machine: one table for the doctor and for the verdict on a trial."""

from __future__ import annotations

from typing import Literal

import msgspec

Status = Literal["ok", "warn", "fail", "info"]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a figure: above `warn` it disturbs a trial, above `fail` it makes it invalid."""

    unit: str
    warn: float
    fail: float | None = None

    def __str__(self) -> str:
        text = f"warn above {self.warn:g} {self.unit}"
        return text if self.fail is None else f"{text}, fail above {self.fail:g} {self.unit}"

    def classify(self, figure: float) -> Status:
        """Classify a figure as `ok`, `warn` or `fail`."""
        if self.fail is not None and figure > self.fail:
            return "fail"
        return "warn" if figure > self.warn else "ok"


STEAL = Limits(unit="% of CPU time", warn=0.5, fail=2)
FOREIGN = Limits(unit="% of CPU time", warn=5)
PRESSURE = Limits(unit="% of the time", warn=1, fail=5)
FREQUENCY = Limits(unit="% between lowest and highest", warn=2)
# On loopback there is no cause for retransmits.
RETRANSMITS = Limits(unit="per million segments", warn=0, fail=10)
ANY_FAILS = Limits(unit="times", warn=0, fail=0)
ANY_WARNS = Limits(unit="times", warn=0)
