"""Typed changes of an experiment: any field; and how windows begin and end."""

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from cachemark.model.errors import UsageError
from cachemark.model.experiment import Workload
from cachemark.model.work_length import ending_after, filling_to, scaled

_MAX_SCALE = 1000
_Struct = TypeVar("_Struct", bound=msgspec.Struct)


def with_end(
    workloads: Sequence[Workload], *, ops: int | None, fill: float | None, scale: float | None
) -> list[Workload]:
    """The workloads with the typed end. Raises UsageError."""
    if fill is not None and all(one.fill_percent is None for one in workloads):
        raise UsageError("--fill: no workload fills a server", "one with fill_percent does")
    return [_with_end(workload, ops, fill, scale) for workload in workloads]


def _with_end(
    workload: Workload, ops: int | None, fill: float | None, scale: float | None
) -> Workload:
    changed = workload
    if ops is not None:
        changed = ending_after(changed, ops)
    if fill is not None:
        if not 0 < fill < 100:
            raise UsageError(
                f"--fill {fill:g}: not a percentage", "write a number above 0 and below 100"
            )
        changed = filling_to(changed, fill)
    if scale is not None:
        if not 0 < scale <= _MAX_SCALE:
            remedy = f"write a number above 0, and at most {_MAX_SCALE}"
            raise UsageError(f"--scale {scale:g}: out of range", remedy)
        changed = scaled(changed, scale)
    return replaced(changed)


def without_own_warmup(workloads: Sequence[Workload]) -> list[Workload]:
    """The workloads with the experiment's warm-up, which was typed."""
    return [msgspec.structs.replace(workload, warmup_ms=None) for workload in workloads]


def without_none(**fields: Any) -> dict[str, Any]:
    """The fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def replaced(value: _Struct, **fields: Any) -> _Struct:
    """Change the given fields, and check the result as if it were read from a file.

    Raises UsageError, which names the option.
    """
    changed = msgspec.structs.replace(value, **without_none(**fields))
    try:
        return msgspec.convert(msgspec.to_builtins(changed), type(value))
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$.")
        option = place.rstrip("`").replace("_", "-")
        raise UsageError(f"--{option}: {what}") from error
