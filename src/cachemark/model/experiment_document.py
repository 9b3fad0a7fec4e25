"""An experiment file before it is read: lists of load factors, a trace's defaults. Pure."""

from __future__ import annotations

import math
import re
from itertools import product
from typing import Any, cast

from cachemark.model.errors import UsageError
from cachemark.model.setting_types import MAX_ENTRIES

RawTable = dict[str, Any]
# Settings of a load that may be a list: one load for each value.
LOAD_FACTORS = (
    "threads", "connections", "depth", "hosts", "processes", "rate", "schedule", "think", "wire",
)  # fmt: skip
# A trace begins with a cold cache, without a warm-up that would fill it, and is played once.
_COLD: RawTable = {"prefill": 0.0, "warmup_ms": 0}
_MAX_RECORDS = 10_000_000


def with_trace_defaults(workload: RawTable) -> RawTable:
    """The settings of a workload; those of a trace that are missing get a trace's defaults."""
    if not workload.get("trace"):
        return workload
    cold = {} if workload.get("prefill") else _COLD
    extent = {} if "ops" in workload else {"passes": 1}
    return {**cold, **extent, "records": _MAX_RECORDS, **workload}


def expand_loads(document: RawTable, where: str) -> tuple[RawTable, list[int]]:
    """Loads with lists become one load for each value; also the number of each one's table.

    Raises UsageError.
    """
    tables: object = document.get("loads")
    if not isinstance(tables, list):
        return document, []
    numbered_loads: list[tuple[int, object]] = []
    names: dict[str, list[str]] = {}
    for number, table in enumerate(cast("list[object]", tables)):
        if not isinstance(table, dict):
            numbered_loads.append((number, table))
            continue
        load = cast("RawTable", table)
        loads = _expanded(load, where)
        numbered_loads += [(number, one) for one in loads]
        if len(loads) > 1:
            names[load["name"]] = [one["name"] for one in loads]
    changed = {**document, "loads": [load for _, load in numbered_loads]}
    changed["workloads"] = _renamed(document.get("workloads"), names)
    if changed["workloads"] is None:
        del changed["workloads"]
    return changed, [number for number, _ in numbered_loads]


def _expanded(load: RawTable, where: str) -> list[RawTable]:
    lists = {name: load[name] for name in LOAD_FACTORS if isinstance(load.get(name), list)}
    if not lists or not isinstance(load.get("name"), str):
        return [load]
    empty = next((name for name, values in lists.items() if not values), None)
    if empty is not None:
        raise UsageError(
            f"{where}: load {load['name']!r}: {empty} is an empty list", f"write {empty} = [1, 4]"
        )
    count = math.prod(map(len, lists.values()))
    if count > MAX_ENTRIES:
        raise UsageError(f"{where}: load {load['name']!r}: {count:,} loads", "shorter lists")
    combinations = [dict(zip(lists, values, strict=True)) for values in product(*lists.values())]
    return [{**load, **one, "name": _name(load["name"], one)} for one in combinations]


def _name(stem: str, factors: RawTable) -> str:
    """Such as `callers-4-threads`."""
    parts = [f"{value}-{name}" for name, value in factors.items()]
    return re.sub(r"[^A-Za-z0-9._-]+", "-", "-".join([stem, *parts]))


def _renamed(workloads: object, names: dict[str, list[str]]) -> object:
    """The workloads, with each name of a load that became several replaced by their names."""
    if not isinstance(workloads, list):
        return workloads
    tables: list[object] = []
    for table in cast("list[object]", workloads):
        loads = cast("RawTable", table).get("loads") if isinstance(table, dict) else None
        if isinstance(loads, list) and names:
            named = [new for old in loads for new in names.get(str(old), [old])]
            tables.append({**cast("RawTable", table), "loads": named})
        else:
            tables.append(table)
    return tables
