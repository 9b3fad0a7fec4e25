"""Prints pages of docs from the code: settings of experiments, faults and rules, exit statuses.

All of docs/experiment.md is printed: experiment_head.md, a list for each class of
`model/experiment.py`, and the examples in docs/examples. In other pages, tables between marks are.
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from cachemark.analysis.resilience.verdict import CRASH, RULES, Rule
from cachemark.cli.exit_status import EXIT_STATUSES, FAILED
from cachemark.model.experiment_settings import TABLES, schema_of, to_toml
from cachemark.model.faults import Fault, all_faults
from cachemark.model.setting_types import default_of

DOCS = Path(__file__).resolve().parents[1] / "docs"
EXAMPLES = DOCS / "examples"
HEAD = Path(__file__).with_name("experiment_head.md")

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
    parts = [HEAD.read_text(encoding="utf-8")]
    parts += [f"## {_TITLES[name]}\n\n{_section(table)}" for name, table in TABLES.items()]
    examples = "\n".join(_example(path) for path in example_files())
    parts.append(f"## Examples\n\nEach file is a whole experiment.\n\n{examples}\n")
    return "\n".join(parts)


def _example(path: Path) -> str:
    """An item of a list: a link to an example, and the comment of its first line."""
    comment = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
    return _filled(f"- [`{path.name}`](examples/{path.name}): {comment}")


def example_files() -> list[Path]:
    """The examples, each a whole experiment."""
    return sorted(EXAMPLES.glob("*.toml"))


def _section(table: type[msgspec.Struct]) -> str:
    """The docstring of a table of settings, and an item of a list for each setting."""
    text = inspect.cleandoc(table.__doc__ or "")
    shapes = schema_of(table)
    fields = ((field, shapes[field.name]) for field in msgspec.structs.fields(table))
    # A table has a section of its own.
    items = [
        _item(of, shape) for of, shape in fields if not shape["description"].startswith("see ")
    ]
    return f"{text}\n\n" + "\n".join(items) + "\n"


def _item(field: msgspec.structs.FieldInfo, shape: dict[str, Any]) -> str:
    """Such as "- `blocks = 5` (integer from 1): repetitions of the whole grid"."""
    meaning, default = shape["description"], _default(field)
    # Numbers and choices need no example.
    texts = [each for each in shape.get("examples", []) if isinstance(each, str | list | dict)]
    examples = [to_toml(each) for each in texts if each and "enum" not in shape]
    told = [f"`{each}`" for each in examples if each != default and each.strip('"') not in meaning]
    such_as = f", such as {', '.join(told[:2])}" if told else ""
    setting = f"{field.name} = {default}" if default else field.name
    kind = f"{_kind(shape)}, required" if field.required else _kind(shape)
    # The default of a switch says what it is.
    what = "" if shape.get("type") == "boolean" else f" ({kind})"
    return _filled(f"- `{setting}`{what}: {meaning}{such_as}")


def _filled(item: str) -> str:
    """An item of a list, in lines of less than 120 characters."""
    return textwrap.fill(
        item, 119, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


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
    kind = str(shape["type"])
    return ("text" if kind == "string" else kind) + _limits(shape)


def _limits(shape: dict[str, Any]) -> str:
    """Such as ` from 0 to 1`; empty without a limit. The largest of all integers is none."""
    low = shape.get("minimum", shape.get("exclusiveMinimum"))
    high = shape.get("maximum", shape.get("exclusiveMaximum"))
    if low is None or shape["type"] == "string":
        return ""
    text = f" {'above' if 'exclusiveMinimum' in shape else 'from'} {low:g}"
    return text if high is None or high >= 2**40 else f"{text} to {high:g}"


def _default(field: msgspec.structs.FieldInfo) -> str:
    """The default value as TOML; empty if there is none."""
    value = None if field.required else default_of(field)
    if value is None or isinstance(value, msgspec.Struct) or value in ("", [], {}):
        return ""
    return to_toml(value)


# The pages that have printed tables, between marks.
_WITH_TABLES = ("ci.md", "resilience.md")
_MARKED = re.compile(r"(<!-- printed: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def with_tables(page: str) -> str:
    """A page with the tables of today between its marks."""
    tables = {
        "faults": _faults(all_faults().values()),
        "rules": _rules([CRASH, *RULES]),
        "statuses": _statuses(),
    }
    return _MARKED.sub(lambda mark: f"{mark[1]}{tables[mark[2]]}{mark[3]}", page)


def _faults(faults: Iterable[Fault]) -> str:
    items = (f"- `{each.name}`{' *' if each.quick else ''}: {each.about}" for each in faults)
    return "\n".join(map(_filled, items)) + "\n"


def _rules(rules: Iterable[Rule]) -> str:
    return "\n".join(_filled(f"- {each.name}: {_rule(each)}") for each in rules) + "\n"


def _rule(rule: Rule) -> str:
    """Such as "hangs, if `longest_ms` is above 5000"; a rule without a figure is broken at once."""
    if not rule.figure:
        return f"{rule.verdict}, once"
    limit = "never came" if rule.limit is None else f"is above {rule.limit:g}"
    only = ", in the profile `common`" if rule.common_only else ""
    return f"{rule.verdict}, if `{rule.figure}` {limit}{only}"


def _statuses() -> str:
    own = {FAILED: "failed, in the way that `cachemark VERB --help` says"}
    rows = (f"| {status} | {text} |\n" for status, text in {**EXIT_STATUSES, **own}.items())
    return "| status | meaning |\n|--:|:--|\n" + "".join(rows)


def printed() -> dict[Path, str]:
    """The pages as they should be."""
    pages = [DOCS / name for name in _WITH_TABLES]
    tables = {page: with_tables(page.read_text(encoding="utf-8")) for page in pages}
    return {DOCS / "experiment.md": document(), **tables}


def _main(arguments: list[str]) -> int:
    """Write the pages into the checkout, or with --check say whether they are fresh."""
    stale = {page: text for page, text in printed().items() if page.read_text("utf-8") != text}
    for page, text in stale.items():
        if "--check" in arguments:
            print(f"{page.name} is stale: run `make docs`", file=sys.stderr)
        else:
            page.write_text(text, encoding="utf-8")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
