"""The types of an experiment's settings, their descriptions and default values."""

from collections.abc import Iterable
from typing import Annotated, Any

import msgspec
from msgspec import Meta

# Above any real count or time, and below what JSON readers turn into a floating-point number.
MAX_VALUE = 2**40
Positive = Annotated[int, Meta(ge=1, le=MAX_VALUE)]
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
# The entries of one axis of a grid.
MAX_ENTRIES = 1000
Names = Annotated[list[str], Meta(max_length=MAX_ENTRIES)]


def described(description: str, *examples: object, **limits: Any) -> Meta:
    """The meaning of a setting, and examples: docs/experiment.md and error messages print them."""
    return Meta(description=description, examples=list(examples) or None, **limits)


def default_of(field: msgspec.structs.FieldInfo) -> Any:
    """The default value of a field that has one."""
    factory = field.default_factory
    return field.default if factory is msgspec.NODEFAULT else factory()


def defaults_of(struct: type[msgspec.Struct], names: Iterable[str]) -> dict[str, Any]:
    """The default values of the fields with these names."""
    fields = {field.name: field for field in msgspec.structs.fields(struct)}
    return {name: default_of(fields[name]) for name in names}
