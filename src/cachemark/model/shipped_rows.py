"""Tables of rows in TOML files that ship with cachemark."""

from functools import cache
from pathlib import Path
from types import GenericAlias
from typing import TypeVar

import msgspec

_Row = TypeVar("_Row")


@cache
def shipped_rows(path: Path, table: str, row: type[_Row]) -> tuple[_Row, ...]:
    """The rows `[[table]]` of a file that has no other table, in their order.

    Raises msgspec.ValidationError if the file has another table or a row is no `row`.
    """
    fields = [(table, GenericAlias(tuple, (row, ...)))]
    file = msgspec.defstruct("File", fields, forbid_unknown_fields=True)
    rows: tuple[_Row, ...] = getattr(msgspec.toml.decode(path.read_bytes(), type=file), table)
    return rows
