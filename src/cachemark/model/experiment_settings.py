"""The settings of an experiment: their tables, meanings and examples, for docs and for errors."""

from __future__ import annotations

import json
import re
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
    """The settings beside one that does not exist."""
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
    """A reason of msgspec's without a regular expression."""
    return _PATTERN.sub("not a value of this setting", reason)


def schema_of(table: type[msgspec.Struct]) -> dict[str, dict[str, Any]]:
    """The JSON Schema of each setting of a table."""
    _, definitions = msgspec.json.schema_components([table])
    return definitions[table.__name__]["properties"]


def to_toml(value: object) -> str:
    """A value as TOML has it, on one line."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {to_toml(each)}' for key, each in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(to_toml(each) for each in value)}]"
    return json.dumps(value, ensure_ascii=False)
