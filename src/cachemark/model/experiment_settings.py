"""The settings of an experiment as TOML text, and their meanings for docs and for errors. Pure."""

import json
import re
import textwrap
from collections.abc import Sequence
from typing import Any

import msgspec

from cachemark.model.experiment import (
    Experiment,
    Keys,
    Load,
    Measure,
    Placement,
    QuickGrid,
    RoundsTiming,
    Timing,
    TomlTable,
    Values,
    Workload,
)
from cachemark.model.setting_types import default_of

_COLUMNS = 100
# Settings that a file shows even with their default values: a reader is likely to change them.
_SHOWN = {
    "Experiment": ("question", "clients", "servers", "blocks", "margin_percent"),
    "Keys": ("count", "distribution", "length"),
    "Values": ("size",),
    "Workload": ("name",),
    "Load": ("name", "threads"),
    "Timing": ("warmup_ms", "measure_ms"),
}
_TABLES = ("workloads", "loads", "timing", "rounds", "placement", "quick")
# Every table by the name that it has in a file, in the order of the docs.
TABLES: dict[str, type[TomlTable]] = {
    "": Experiment,
    "workloads": Workload,
    "keys": Keys,
    "values": Values,
    "loads": Load,
    "measure": Measure,
    "timing": Timing,
    "rounds": RoundsTiming,
    "placement": Placement,
    "quick": QuickGrid,
}
_PATTERN = re.compile(r"Expected `str` matching regex .*")


def table_of(names: Sequence[str]) -> type[TomlTable]:
    """The table of a setting, which is named from the outermost table inwards."""
    return TABLES.get(names[-2], Experiment) if len(names) > 1 else Experiment


def known_settings(names: Sequence[str]) -> str:
    """A remedy for an unknown setting: the known settings of its table."""
    known = ", ".join(field.name for field in msgspec.structs.fields(table_of(names)))
    return f"known settings there: {known}"


def example_of(names: Sequence[str]) -> str:
    """How the setting is written, such as `write size = "1k..64k"`; empty if nothing is known."""
    for depth in range(len(names), 0, -1):
        table, name = table_of(names[:depth]), names[depth - 1]
        examples = schema_of(table).get(name, {}).get("examples", [])
        if examples:
            return "write " + ", or ".join(f"{name} = {to_toml(value)}" for value in examples[:3])
    return ""


def in_words(reason: str) -> str:
    """msgspec's reason, without a regular expression."""
    return _PATTERN.sub("not a value of this setting", reason)


def schema_of(table: type[msgspec.Struct]) -> dict[str, dict[str, Any]]:
    """The JSON Schema of each setting of a table."""
    _, definitions = msgspec.json.schema_components([table])
    return definitions[table.__name__]["properties"]


def to_toml(value: object) -> str:
    """A value in TOML, on one line."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {to_toml(each)}' for key, each in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(to_toml(each) for each in value)}]"
    return json.dumps(value, ensure_ascii=False)


def experiment_text(experiment: Experiment) -> str:
    """The text of a file that has this experiment."""
    parts = [
        "# Every setting: docs/experiment.md. Play it: cachemark run FILE\n",
        _settings(experiment, _TABLES),
    ]
    for workload in experiment.workloads:
        parts.append("[[workloads]]\n" + _settings(workload, ("keys", "values")))
        parts += [
            f"[workloads.{name}]\n" + text
            for name in ("keys", "values")
            if not workload.trace and (text := _settings(getattr(workload, name), ()))
        ]
    parts += ["[[loads]]\n" + _settings(load, ()) for load in experiment.loads]
    for name in ("timing", "rounds", "placement"):
        text = _settings(getattr(experiment, name), ())
        parts += [f"[{name}]\n{text}"] if text else []
    return "\n".join(parts)


def _settings(table: TomlTable, tables: Sequence[str]) -> str:
    """The lines of a table: settings that differ from their defaults or are often changed."""
    shapes, lines = schema_of(type(table)), list[str]()
    for field in msgspec.structs.fields(table):
        value = getattr(table, field.name)
        given = field.required or value != default_of(field)
        shown = field.name in _SHOWN.get(type(table).__name__, ())
        if field.name in tables or value is None or not (given or shown):
            continue
        comment = shapes[field.name].get("description", "")
        lines += textwrap.wrap(comment, _COLUMNS, initial_indent="# ", subsequent_indent="# ")
        lines.append(f"{field.name} = {to_toml(value)}")
    return "\n".join([*lines, ""]) if lines else ""
