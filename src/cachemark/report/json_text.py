"""JSON documents as text: indented, with a newline at the end."""

from collections.abc import Callable
from typing import Any

import msgspec

from cachemark.model.foreign_text import json_escaped

# Further digits depend on the CPU: NumPy adds in another order where vectors are wider.
SIGNIFICANT_DIGITS = 9


def json_text(value: object) -> str:
    """Any value that msgspec can encode, as indented JSON with all digits."""
    return json_escaped(msgspec.json.format(msgspec.json.encode(value)).decode("utf-8")) + "\n"


def render_json(value: object) -> str:
    """The renderer of documents: each float is rounded to SIGNIFICANT_DIGITS."""
    return json_text(_rounded(msgspec.to_builtins(value, str_keys=True)))


def stamped(value: msgspec.Struct, schema: int) -> dict[str, object]:
    """The fields of a value, behind their version: `schema`."""
    return {"schema": schema, **msgspec.structs.asdict(value)}


def versioned(schema: int) -> Callable[[msgspec.Struct], str]:
    """The renderer of values whose fields have this version."""
    return lambda value: render_json(stamped(value, schema))


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{SIGNIFICANT_DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return value
