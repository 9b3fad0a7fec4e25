"""Generates PROTOCOL.md and the JSON Schema from the message classes in `protocol.py`."""

import inspect
import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from cachemark.model import protocol
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

_INTRODUCTION = """\
# The worker protocol, version {version}

A worker is a program that plays a [tape](docs/tape.md) with one client library. It owns the clock,
the loop and the histograms. cachemark starts the worker, sends it requests, and judges its results.
[An example](workers/reference/worker.py) has 250 lines of plain Python.

`cachemark protocol` prints this page with a table of the fields of each message, from
`src/cachemark/model/protocol.py`. The same tables are on the documentation site (`make docs`), and
in the JSON Schema [docs/protocol.schema.json](docs/protocol.schema.json).

## Rules

- **Messages** are JSON lines in UTF-8. Requests arrive on stdin, answers go to stdout. stderr is
  the worker's log, which the outcome keeps.
- **Fields.** Every message has a `type`. Unknown fields are ignored. A field with its default value
  (in brackets below, or null) may be left out; all others are required.
- **Failures** are answers (`unsupported`, `error`), not crashes. The end of stdin means `bye`.
- **No retries.** A failed operation counts as an error, never as an operation. A miss is an answer.
- **Kinds.** The kind of an operation is its verb on the tape, followed by `_noreply` if it asks for
  no reply.
- **Verification.** The worker compares every byte of a value with the tape: `wrong_values`.
- **Operations without a reply.** After them, the worker sends a command with a reply (`version`) on
  each connection, and waits for it inside the window. This command is called a barrier.
- **Histograms** are {histogram}.

## A session

```
cachemark                            worker
   │ hello ─────────────────────────▶ │
   │ ◀──────────── ready, unsupported │
   │ prepare ───────────────────────▶ │ reads the tape, connects
   │ ◀───── ready, unsupported, error │
   │ run prefill ───────────────────▶ │ stores each key once
   │ ◀─────────────────────────  done │
   │ run warmup ────────────────────▶ │ plays the tape from its start
   │ ◀─────────────── progress … done │
   │ run measure ───────────────────▶ │ plays the tape from its start
   │ ◀─────────────── progress … done │
   │                                  │ or, in turn with other workers:
   │ begin_slices ──────────────────▶ │ from the tape's start
   │ ◀──────────────────────── ready  │
   │ slice ─────────────────────────▶ │ plays on, some milliseconds
   │ ◀─────────────────── slice_done  │ … many times
   │ end_slices ────────────────────▶ │
   │ ◀──────────────────────── done   │
   │ bye ───────────────────────────▶ │ exits with status 0
```
"""


def document(*, fields: bool = True) -> str:
    """The page about the protocol; PROTOCOL.md is without the tables of fields."""
    histogram = (
        "HdrHistogram V2, compressed, base64; nanoseconds; 1 ns to 100 s; 3 significant digits"
    )
    parts = [_INTRODUCTION.format(version=PROTOCOL_VERSION, histogram=histogram)]
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
    shapes: dict[str, Any] = _shapes(struct)
    rows: list[str] = []
    for field in msgspec.structs.fields(struct):
        shape = shapes[field.encode_name]
        meaning = shape.get("description", "").replace("|", "\\|")
        rows.append(f"| `{field.name}` | {_kind(shape)}{_default(field)} | {meaning} |")
    return rows


def _shapes(struct: type[msgspec.Struct]) -> dict[str, Any]:
    _, definitions = msgspec.json.schema_components([struct])
    return definitions[struct.__name__]["properties"]


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
