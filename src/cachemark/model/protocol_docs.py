"""Generates PROTOCOL.md and the JSON Schema from the message classes in `protocol.py`."""

import inspect
import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from cachemark.model import protocol
from cachemark.model.experiment_settings import schema_of
from cachemark.model.protocol import ANSWERS, PROTOCOL_VERSION, REQUESTS, Message
from cachemark.model.protocol_results import (
    GiveUp,
    Groups,
    HeapWork,
    Operation,
    Sections,
    Timeline,
    WrongReply,
)
from cachemark.model.setting_types import default_of


def document(*, fields: bool = True) -> str:
    """The page about the protocol; PROTOCOL.md is without the tables of fields."""
    histogram = (
        "HdrHistogram V2, compressed, base64; nanoseconds; 1 ns to 100 s; 3 significant digits"
    )
    introduction = Path(__file__).with_name("protocol_introduction.txt").read_text("utf-8")
    parts = [introduction.format(version=PROTOCOL_VERSION, histogram=histogram)]
    parts.append("## Requests\n")
    parts += [_section(message, fields) for message in REQUESTS]
    parts.append("## GiveUp, a part of `run`\n")
    parts.append(_body(GiveUp, fields))
    parts.append("## Answers\n")
    parts += [_section(message, fields) for message in ANSWERS]
    for part in (Operation, Groups, Timeline, Sections, WrongReply, HeapWork):
        parts.append(f"## {part.__name__}, a part of `done`\n")
        parts.append(_body(part, fields))
    return "\n".join(parts)


def schema() -> str:
    """The JSON Schema of every message, as JSON text."""
    (one_of,), definitions = msgspec.json.schema_components(
        [protocol.Request | protocol.WorkerAnswer], ref_template="#/$defs/{name}"
    )
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"cachemark worker protocol {PROTOCOL_VERSION}",
        **one_of,
        "$defs": _with_clean_descriptions(definitions),
    }
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _with_clean_descriptions(part: Any) -> Any:
    """The schema with docstrings as Python 3.13 keeps them, without their indentation."""
    if isinstance(part, list):
        return [_with_clean_descriptions(each) for each in part]
    if not isinstance(part, dict):
        return part
    return {
        name: inspect.cleandoc(each)
        if name == "description" and isinstance(each, str)
        else _with_clean_descriptions(each)
        for name, each in part.items()
    }


def _section(message: type[Message], fields: bool) -> str:
    tag = message.__struct_config__.tag
    return f"### `{tag}`\n\n{_body(message, fields)}"


def _body(struct: type[msgspec.Struct], fields: bool) -> str:
    text = inspect.cleandoc(struct.__doc__ or "")
    rows = _rows(struct) if fields else []
    if not rows:
        return f"{text}\n"
    head = "| field | type (default) | meaning |\n|---|---|---|"
    return f"{text}\n\n{head}\n" + "\n".join(rows) + "\n"


def _rows(struct: type[msgspec.Struct]) -> list[str]:
    shapes: dict[str, Any] = schema_of(struct)
    rows: list[str] = []
    for field in msgspec.structs.fields(struct):
        shape = shapes[field.encode_name]
        meaning = shape.get("description", "").replace("|", "\\|")
        rows.append(f"| `{field.name}` | {_kind(shape)}{_default(field)} | {meaning} |")
    return rows


def _kind(shape: dict[str, Any]) -> str:
    if "anyOf" in shape:
        return " or ".join(_kind(option) for option in shape["anyOf"])
    if "enum" in shape:
        return " \\| ".join(f"`{value}`" for value in shape["enum"])
    if "prefixItems" in shape:
        return f"[{', '.join(_kind(item) for item in shape['prefixItems'])}]"
    if "items" in shape:
        return f"list of {_kind(shape['items'])}"
    if isinstance(shape.get("additionalProperties"), dict):
        return f"object of {_kind(shape['additionalProperties'])}"
    return str(shape.get("type") or shape.get("$ref", "object").rpartition("/")[2])


def _default(field: msgspec.structs.FieldInfo) -> str:
    """Such as ` (0)`; empty for a required field, and for null, which the type names."""
    value = None if field.required else default_of(field)
    return "" if value is None else f" (`{json.dumps(value)}`)"


def _main(arguments: list[str]) -> int:
    """Write both documents into the checkout, or with --check say whether they are fresh."""
    root = Path(__file__).resolve().parents[3]
    documents = {
        root / "PROTOCOL.md": document(fields=False),
        root / "docs" / "protocol.schema.json": schema(),
    }
    if "--check" not in arguments:
        for path, text in documents.items():
            path.write_text(text, encoding="utf-8")
        return 0
    stale = [p for p, text in documents.items() if p.read_text(encoding="utf-8") != text]
    for path in stale:
        print(f"{path.name} is stale: run `make docs`", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
