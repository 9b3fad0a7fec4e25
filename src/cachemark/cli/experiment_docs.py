"""Prints docs/experiment.md from the code: every setting of an experiment file.

The text before the tables is experiment_head.md. The tables are those of `model/experiment.py`, the
servers those of the registry, the examples the files in docs/examples.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import msgspec

from cachemark.endpoints.servers import kinds
from cachemark.model.experiment_settings import TABLES, schema_of, to_toml
from cachemark.model.setting_types import default_of

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "experiment.md"
EXAMPLES = ROOT / "docs" / "examples"
HEAD = Path(__file__).with_name("experiment_head.md")
TLS = Path(__file__).with_name("experiment_tls.md")

_TITLES = {
    "": "The experiment",
    "workloads": "`[[workloads]]`",
    "keys": "`keys` of a workload",
    "values": "`values` of a workload",
    "loads": "`[[loads]]`",
    "measure": "`measure` of a load",
    "timing": "`[timing]`",
    "rounds": "`[rounds]`",
    "placement": "`[placement]`",
    "quick": "`[quick]`",
}


def document() -> str:
    """The text of docs/experiment.md."""
    parts = [HEAD.read_text(encoding="utf-8"), _servers()]
    parts += [f"## {_TITLES[name]}\n\n{_table(table)}" for name, table in TABLES.items()]
    head = "## Examples\n\n| file, a whole experiment | it shows |\n|---|---|\n"
    parts.append(head + "".join(_example(path) for path in example_files()))
    return "\n".join(parts)


def _example(path: Path) -> str:
    """A table row: a link to an example, and the comment of its first line."""
    comment = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
    return f"| [`{path.name}`](examples/{path.name}) | {_cell(comment)} |\n"


def example_files() -> list[Path]:
    """The examples, each a whole experiment."""
    return sorted(EXAMPLES.glob("*.toml"))


def _servers() -> str:
    rows = "\n".join(f"| `{_cell(kind.form)}` | {_cell(kind.summary)} |" for kind in kinds())
    return f"| server | what it is |\n|---|---|\n{rows}\n\n{TLS.read_text(encoding='utf-8')}"


def _table(table: type[msgspec.Struct]) -> str:
    text = inspect.cleandoc(table.__doc__ or "")
    shapes = schema_of(table)
    rows = [_row(field, shapes[field.name]) for field in msgspec.structs.fields(table)]
    head = "| setting | value | default | example | meaning |\n|---|---|---|---|---|"
    return f"{text}\n\n{head}\n" + "\n".join(rows) + "\n"


def _row(field: msgspec.structs.FieldInfo, shape: dict[str, Any]) -> str:
    examples = [f"`{_cell(to_toml(value))}`" for value in shape.get("examples", [])]
    cells = [f"`{field.name}`", _kind(shape), _default(field), ", ".join(examples[:3])]
    return f"| {' | '.join([*cells, _cell(shape['description'])])} |"


def _kind(shape: dict[str, Any]) -> str:
    """The type and the limits of a setting, in words."""
    if "anyOf" in shape:
        kinds_of = (_kind(each) for each in shape["anyOf"] if each.get("type") != "null")
        return " or ".join(dict.fromkeys(kinds_of))
    if "enum" in shape:
        return ", ".join(f"`{value}`" for value in shape["enum"] if value is not None)
    if "$ref" in shape or "allOf" in shape:
        return "table"
    if shape.get("type") == "array":
        return "list"
    if shape.get("type") == "object":
        return "table"
    return {"string": "text", "integer": "integer", "number": "number", "boolean": "yes or no"}[
        shape["type"]
    ].replace("yes or no", "`true`, `false`") + _limits(shape)


def _limits(shape: dict[str, Any]) -> str:
    """Such as `, 0 to 1`; the largest of all integers is not worth a word."""
    low = shape.get("minimum", shape.get("exclusiveMinimum"))
    high = shape.get("maximum", shape.get("exclusiveMaximum"))
    if low is None or shape["type"] == "string":
        return ""
    above = ", above" if "exclusiveMinimum" in shape else ","
    if high is not None and high < 2**40:
        return f", {low:g} to {high:g}"
    return f"{above} {low:g}" if "exclusiveMinimum" in shape else f", {low:g} or more"


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    value = default_of(field)
    if value is None or isinstance(value, msgspec.Struct) or value in ("", [], {}):
        return "–"
    return f"`{to_toml(value)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _main(arguments: list[str]) -> int:
    """Write the page into the checkout, or with --check say whether it is fresh."""
    if "--check" not in arguments:
        PAGE.write_text(document(), encoding="utf-8")
        return 0
    if PAGE.read_text(encoding="utf-8") == document():
        return 0
    print(f"{PAGE.name} is stale: run `make docs`", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
