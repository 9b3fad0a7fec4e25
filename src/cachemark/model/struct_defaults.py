"""The default values of a struct's fields."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec


def default_of(field: msgspec.structs.FieldInfo) -> Any:
    """The default value of a field that has one."""
    factory = field.default_factory
    return field.default if factory is msgspec.NODEFAULT else factory()


def defaults_of(struct: type[msgspec.Struct], names: Iterable[str]) -> dict[str, Any]:
    """The default values of the fields with these names."""
    fields = {field.name: field for field in msgspec.structs.fields(struct)}
    return {name: default_of(fields[name]) for name in names}
