"""The types of an experiment's settings, and their descriptions."""

from __future__ import annotations

from typing import Annotated, Any

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
