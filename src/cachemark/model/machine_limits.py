"""Limits for figures of the machine, for the doctor and the verdict on a trial; and its checks."""

import math
from typing import Literal

import msgspec

from cachemark.model.units import plain

NOT_READABLE = "not readable"
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


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """A check's result. `info` is a fact without a status; `limits` says when it warns or fails."""

    name: str
    value: str
    status: Status = msgspec.field(default="info", name="judgement")
    limits: str = ""
    remedy: str = ""


def limit_check(name: str, figure: float | None, limits: Limits, remedy: str) -> Check:
    """Compare a figure with its limits. If it could not be read, the check has no result."""
    if figure is None:
        return Check(name=name, value=NOT_READABLE, limits=str(limits))
    text = f"{plain(figure)} {limits.unit}"
    return judged_check(name, text, str(limits), remedy, limits.classify(figure))


def word_check(name: str, value: str, good: tuple[str, ...], remedy: str) -> Check:
    """Compare a word with the good ones. If it could not be read, the check has no result."""
    limits = f"warn unless {' or '.join(good)}"
    if not value:
        return Check(name=name, value=NOT_READABLE, limits=limits)
    return judged_check(name, value, limits, remedy, "ok" if value in good else "warn")


def least_check(name: str, count: float | None, least: int, remedy: str) -> Check:
    """Compare a count with the least that is enough. If it could not be read: no result."""
    limits = f"warn below {least}"
    if count is None:
        return Check(name=name, value=NOT_READABLE, limits=limits)
    text = "unlimited" if count == math.inf else f"{count:.0f}"
    return judged_check(name, text, limits, remedy, "warn" if count < least else "ok")


def judged_check(name: str, value: str, limits: str, remedy: str, status: Status) -> Check:
    """A check with its remedy, unless it is `ok`."""
    own = "" if status == "ok" else remedy
    return Check(name=name, value=value, status=status, limits=limits, remedy=own)


def info_check(name: str, value: str) -> Check:
    """A fact without a result."""
    return Check(name=name, value=value or NOT_READABLE)
