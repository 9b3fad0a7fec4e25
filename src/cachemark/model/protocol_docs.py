"""PROTOCOL.md and the JSON Schema, printed from the table of messages in `protocol.py`."""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from cachemark.model import protocol
from cachemark.model.protocol import (
    ANSWERS,
    PROTOCOL_VERSION,
    REQUESTS,
    Course,
    Message,
    Operation,
    Sections,
)

_INTRODUCTION = """\
# The worker protocol, version {version}

A worker is a program that plays a [tape](docs/tape.md) with one client library. It owns the
clock, the loop and the histograms; cachemark starts it, tells it what to do, and judges what it
says. Adding a language means writing one.

This page is printed from `src/cachemark/model/protocol.py` (`cachemark protocol`), the JSON Schema
[docs/protocol.schema.json](docs/protocol.schema.json) from the same table.

- JSON lines: one object a line, UTF-8. Requests on stdin, answers on stdout. stderr is the log
  and is kept with the outcome.
- Every message has a `type`. Unknown fields are ignored. A field that has its default value may
  be left out.
- Unsupported and error are answers, not crashes. The end of stdin means `bye`.
- No worker retries an operation. A failed operation counts as an error, never as an operation.
  A miss is an answer.
- An operation's kind is its verb on the tape, followed by `_noreply` where it asks for none.
- Values are verified byte by byte against the tape; a reply that differs is a `wrong_value`.
- Operations without a reply are ended, on each connection, by a command that is answered
  (`version`) inside the window.
- A histogram is {histogram}.

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
   │ bye ───────────────────────────▶ │ exits with status 0
```

A whole worker in 150 lines of plain Python:
[workers/reference/worker.py](workers/reference/worker.py).
"""


def document() -> str:
    """PROTOCOL.md."""
    histogram = (
        "HdrHistogram V2, compressed, base64; nanoseconds; 1 ns to 100 s; 3 significant digits"
    )
    parts = [_INTRODUCTION.format(version=PROTOCOL_VERSION, histogram=histogram)]
    parts.append("## Requests\n")
    parts += [_section(message) for message in REQUESTS]
    parts.append("## Answers\n")
    parts += [_section(message) for message in ANSWERS]
    for part in (Operation, Course, Sections):
        parts.append(f"## {part.__name__}, a part of `done`\n")
        parts.append(_body(part))
    return "\n".join(parts)


def schema() -> str:
    """The JSON Schema of every message, as JSON text."""
    (one_of,), definitions = msgspec.json.schema_components(
        [protocol.Request | protocol.Answer], ref_template="#/$defs/{name}"
    )
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"cachemark worker protocol {PROTOCOL_VERSION}",
        **one_of,
        "$defs": definitions,
    }
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _section(message: type[Message]) -> str:
    tag = message.__struct_config__.tag
    return f"### `{tag}`\n\n{_body(message)}"


def _body(struct: type[msgspec.Struct]) -> str:
    text = inspect.cleandoc(struct.__doc__ or "")
    rows = _rows(struct)
    if not rows:
        return f"{text}\n"
    head = "| field | type | default | meaning |\n|---|---|---|---|"
    return f"{text}\n\n{head}\n" + "\n".join(rows) + "\n"


def _rows(struct: type[msgspec.Struct]) -> list[str]:
    shapes: dict[str, Any] = _shapes(struct)
    rows: list[str] = []
    for field in msgspec.structs.fields(struct):
        shape = shapes[field.encode_name]
        meaning = shape.get("description", "").replace("|", "\\|")
        rows.append(f"| `{field.name}` | {_kind(shape)} | {_default(field)} | {meaning} |")
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
    if field.required:
        return "required"
    made = field.default is msgspec.NODEFAULT
    value = field.default_factory() if made else field.default
    return "–" if value is None else f"`{json.dumps(value)}`"


def _main(arguments: list[str]) -> int:
    """Write both documents into the checkout, or with --check say whether they are fresh."""
    root = Path(__file__).resolve().parents[3]
    documents = {
        root / "PROTOCOL.md": document(),
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
