"""What stands behind a cell's names: two cells are the same work only if this is the same.

A workload is named by whoever wrote the experiment, and `mixed` of one year need not be that of the
next. Settings that have their default are left out, so a cachemark that learns a new one still
knows the cells of older runs.
"""

from __future__ import annotations

import hashlib

import msgspec

from cachemark.model.outcome import Outcome

# What ends a worker that hangs does not change what is measured.
_PATIENCE = frozenset({"ready_ms", "silence_ms"})


def definition(outcome: Outcome) -> dict[str, str]:
    """The settings of a trial's workload, load and timing that are not the defaults, flat."""
    found: dict[str, str] = {}
    for place, value in (
        ("workload", outcome.workload),
        ("load", outcome.load),
        ("timing", outcome.timing),
    ):
        found |= _flat(place, value)
    return {name: text for name, text in found.items() if name.split(".")[-1] not in _PATIENCE}


def fingerprint(outcome: Outcome) -> str:
    """The definition in sixteen digits."""
    text = msgspec.json.encode(definition(outcome), order="sorted")
    return hashlib.sha256(text).hexdigest()[:16]


def changes(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """What differs between two definitions, such as `workload.keys.count: 100 → 1000`."""
    names = sorted(before.keys() | after.keys())
    return [
        f"{name}: {before.get(name, 'default')} → {after.get(name, 'default')}"
        for name in names
        if before.get(name) != after.get(name)
    ]


def _flat(place: str, value: msgspec.Struct) -> dict[str, str]:
    found: dict[str, str] = {}
    for field in msgspec.structs.fields(value):
        own = getattr(value, field.name)
        name = f"{place}.{field.name}"
        # The names of a workload and its loads are how it is called, not what it is.
        if name in ("workload.name", "workload.loads", "load.name"):
            continue
        if isinstance(own, msgspec.Struct):
            found |= _flat(name, own)
        elif own != _default(field):
            found[name] = msgspec.json.encode(own, order="sorted").decode()
    return found


def _default(field: msgspec.structs.FieldInfo) -> object:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default
