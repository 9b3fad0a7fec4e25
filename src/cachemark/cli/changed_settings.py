"""Settings that the command line changes, checked like those of a file."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from cachemark.model.errors import UsageError

_Struct = TypeVar("_Struct", bound=msgspec.Struct)


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
