"""An experiment as TOML text with a comment for each setting. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import msgspec

from cachemark.model.experiment import Experiment, TomlTable
from cachemark.model.experiment_settings import schema_of, to_toml
from cachemark.model.struct_defaults import default_of

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


def experiment_text(experiment: Experiment) -> str:
    """The text of an experiment file, which is read as the same experiment."""
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
    """The lines of a table: what differs from its default, and what is often changed."""
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
