"""One check: its value, its result, its limits, and what to do about it."""

from __future__ import annotations

import msgspec

from cachemark.host.limits import Judgement, Limits

NOT_READABLE = "not readable"


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """A check's result. `info` is a fact without a judgement; `limits` says what was judged by."""

    name: str
    value: str
    judgement: Judgement = "info"
    limits: str = ""
    remedy: str = ""


def measured(name: str, figure: float | None, limits: Limits, remedy: str) -> Check:
    """Compare a figure with its limits. If it could not be read, the check has no result."""
    if figure is None:
        return Check(name=name, value=NOT_READABLE, limits=str(limits))
    judgement = limits.judge(figure)
    return Check(
        name=name,
        value=f"{figure:,.4g} {limits.unit}",
        judgement=judgement,
        limits=str(limits),
        remedy="" if judgement == "ok" else remedy,
    )


def wanted(name: str, value: str, good: tuple[str, ...], remedy: str) -> Check:
    """Compare a word with the good ones. If it could not be read, the check has no result."""
    limits = f"warn unless {' or '.join(good)}"
    if not value:
        return Check(name=name, value=NOT_READABLE, limits=limits)
    if value in good:
        return Check(name=name, value=value, judgement="ok", limits=limits)
    return Check(name=name, value=value, judgement="warn", limits=limits, remedy=remedy)


def told(name: str, value: str) -> Check:
    """A fact without a result."""
    return Check(name=name, value=value or NOT_READABLE)
