"""An experiment file before it is read: lists of factors, a trace's defaults. Pure."""

import math
import re
from itertools import product
from typing import Any, NamedTuple, cast

from cachemark.model.errors import UsageError
from cachemark.model.setting_types import MAX_ENTRIES

RawTable = dict[str, Any]
# Settings that may be a list: one workload or load for each value.
FACTORS = {
    "workloads": ("hit_ratio", "prefill", "run"),
    "loads": (
        "threads", "connections", "depth", "hosts", "processes", "rate", "schedule", "think",
        "wire",
    ),
}  # fmt: skip
# A trace begins with a cold cache, without a warm-up that would fill it, and is played once.
_COLD: RawTable = {"prefill": 0.0, "warmup_ms": 0}
_MAX_RECORDS = 10_000_000


def with_trace_defaults(workload: RawTable) -> RawTable:
    """The settings of a workload; a trace's missing settings get a trace's defaults."""
    if not workload.get("trace"):
        return workload
    cold = {} if workload.get("prefill") else _COLD
    extent = {} if "ops" in workload else {"passes": 1}
    return {**cold, **extent, "records": _MAX_RECORDS, **workload}


class Expanded(NamedTuple):
    """A document without lists of factors.

    `tables`: for each of its workloads and loads, the number of its table in the original document.
    """

    document: RawTable
    tables: dict[str, list[int]]


def expand_factors(document: RawTable, where: str) -> Expanded:
    """Workloads and loads with lists become one for each value. Raises UsageError."""
    changed = dict(document)
    numbers: dict[str, list[int]] = {}
    names: dict[str, list[str]] = {}
    for key in FACTORS:
        tables: object = document.get(key)
        if isinstance(tables, list):
            changed[key], numbers[key], renamed = _expand(cast("list[object]", tables), key, where)
            names = renamed if key == "loads" else names
    if "workloads" in changed:
        changed["workloads"] = _renamed(changed["workloads"], names)
    return Expanded(changed, numbers)


def _expand(
    tables: list[object], key: str, where: str
) -> tuple[list[object], list[int], dict[str, list[str]]]:
    """The tables, the number of each one's original, and the new names of each that had a list."""
    found: list[tuple[int, object]] = []
    names: dict[str, list[str]] = {}
    for number, table in enumerate(tables):
        if not isinstance(table, dict):
            found.append((number, table))
            continue
        old = cast("RawTable", table)
        ones = _expanded(old, key, where)
        found += [(number, one) for one in ones]
        if len(ones) > 1:
            names[old["name"]] = [one["name"] for one in ones]
    return [one for _, one in found], [number for number, _ in found], names


def _expanded(table: RawTable, key: str, where: str) -> list[RawTable]:
    lists = {name: table[name] for name in FACTORS[key] if isinstance(table.get(name), list)}
    if not lists or not isinstance(table.get("name"), str):
        return [table]
    place = f"{where}: {key.removesuffix('s')} {table['name']!r}"
    empty = next((name for name, values in lists.items() if not values), None)
    if empty is not None:
        raise UsageError(f"{place}: {empty} is an empty list", "write a value into it")
    count = math.prod(map(len, lists.values()))
    if count > MAX_ENTRIES:
        raise UsageError(f"{place}: {count:,} {key}", "shorter lists")
    combinations = [dict(zip(lists, values, strict=True)) for values in product(*lists.values())]
    return [{**table, **one, "name": _name(table["name"], one)} for one in combinations]


def _name(stem: str, factors: RawTable) -> str:
    """Such as `callers-4-threads`."""
    parts = [f"{value}-{name}" for name, value in factors.items()]
    return re.sub(r"[^A-Za-z0-9._-]+", "-", "-".join([stem, *parts]))


def _renamed(workloads: object, names: dict[str, list[str]]) -> object:
    """The workloads; the name of a load that had a list is replaced by the new names."""
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
