"""Two cells of different runs are the same work if their settings are equal, not their names.

The author of an experiment chooses the names of its workloads, so `mixed` may mean something else
in another run. Settings with their default value are left out. So a new setting in a later version
does not change the identity of older cells.
"""

import hashlib

import msgspec

from cachemark.model.outcome import Outcome
from cachemark.model.setting_types import default_of

# The limits after which a hanging worker is stopped do not change what is measured.
_WORKER_TIMEOUTS = frozenset({"ready_ms", "silence_ms"})


def definition(outcome: Outcome) -> dict[str, str]:
    """The settings of workload, load and timing that differ from their defaults, by dotted name."""
    settings: dict[str, str] = {}
    for place, value in (
        ("workload", outcome.workload),
        ("load", outcome.load),
        ("timing", outcome.timing),
    ):
        settings |= _flat(place, value)
    return {
        name: text for name, text in settings.items() if name.split(".")[-1] not in _WORKER_TIMEOUTS
    }


def fingerprint(outcome: Outcome) -> str:
    """A hash of the definition, 16 hexadecimal digits."""
    text = msgspec.json.encode(definition(outcome), order="sorted")
    return hashlib.sha256(text).hexdigest()[:16]


def changed_settings(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """The differences of two definitions, such as `workload.keys.count: 100 → 1000`."""
    names = sorted(before.keys() | after.keys())
    return [
        f"{name}: {before.get(name, 'default')} → {after.get(name, 'default')}"
        for name in names
        if before.get(name) != after.get(name)
    ]


def _flat(place: str, value: msgspec.Struct) -> dict[str, str]:
    settings: dict[str, str] = {}
    for field in msgspec.structs.fields(value):
        own = getattr(value, field.name)
        name = f"{place}.{field.name}"
        # Names do not change the work.
        if name in ("workload.name", "workload.loads", "load.name"):
            continue
        if isinstance(own, msgspec.Struct):
            if default_of(field) is None:
                # The table's presence changes the work, even if all its settings are defaults.
                settings[name] = "{}"
            settings |= _flat(name, own)
        elif own != default_of(field):
            settings[name] = msgspec.json.encode(own, order="sorted").decode()
    return settings
