"""One check: its value, its result, its limits, and what to do about it."""

from __future__ import annotations

import msgspec

from cachemark.model.machine_limits import Limits, Status

NOT_READABLE = "not readable"


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """A check's result. `info` is a fact without a status; `limits` says what was judged by."""

    name: str
    value: str
    status: Status = msgspec.field(default="info", name="judgement")
    limits: str = ""
    remedy: str = ""


def limit_check(name: str, figure: float | None, limits: Limits, remedy: str) -> Check:
    """Compare a figure with its limits. If it could not be read, the check has no result."""
    if figure is None:
        return Check(name=name, value=NOT_READABLE, limits=str(limits))
    status = limits.classify(figure)
    return Check(
        name=name,
        value=f"{figure:,.4g} {limits.unit}",
        status=status,
        limits=str(limits),
        remedy="" if status == "ok" else remedy,
    )


def word_check(name: str, value: str, good: tuple[str, ...], remedy: str) -> Check:
    """Compare a word with the good ones. If it could not be read, the check has no result."""
    limits = f"warn unless {' or '.join(good)}"
    if not value:
        return Check(name=name, value=NOT_READABLE, limits=limits)
    if value in good:
        return Check(name=name, value=value, status="ok", limits=limits)
    return Check(name=name, value=value, status="warn", limits=limits, remedy=remedy)


def info_check(name: str, value: str) -> Check:
    """A fact without a result."""
    return Check(name=name, value=value or NOT_READABLE)
