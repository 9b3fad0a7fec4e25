"""Two cells of different runs are the same work if their settings are equal, not their names.

The author of an experiment chooses the names of its workloads, so `mixed` may mean something else
in another run. Settings with their default value are left out. So a new setting in a later version
does not change the identity of older cells.
"""

import hashlib
from functools import cache

import msgspec

from cachemark.model.outcome import Outcome
from cachemark.model.setting_types import default_of

# Names do not change the work, nor do the limits after which a hanging worker is stopped.
_NOT_THE_WORK = frozenset(
    {"workload.name", "workload.loads", "load.name", "timing.ready_ms", "timing.silence_ms"}
)
# A history asks for the settings of every trial; msgspec finds the fields of a type anew each time.
_fields = cache(msgspec.structs.fields)


def definition(outcome: Outcome) -> dict[str, str]:
    """The settings of workload, load and timing that differ from their defaults, by dotted name."""
    return {
        **_flat("workload", outcome.workload),
        **_flat("load", outcome.load),
        **_flat("timing", outcome.timing),
    }


def fingerprint(outcome: Outcome) -> str:
    """A hash of the definition, 16 hexadecimal digits."""
    text = msgspec.json.encode(definition(outcome), order="sorted")
    return hashlib.sha256(text).hexdigest()[:16]


def changed_settings(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """The differences of two definitions, such as `workload.keys.count: 100 → 1000`."""
    return [
        f"{name}: {before.get(name, 'default')} → {after.get(name, 'default')}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]


def _flat(place: str, value: msgspec.Struct) -> dict[str, str]:
    settings: dict[str, str] = {}
    for field in _fields(type(value)):
        own = getattr(value, field.name)
        name = f"{place}.{field.name}"
        if name in _NOT_THE_WORK:
            continue
        if isinstance(own, msgspec.Struct):
            if default_of(field) is None:
                # The table's presence changes the work, even if all its settings are defaults.
                settings[name] = "{}"
            settings |= _flat(name, own)
        elif own != default_of(field):
            settings[name] = msgspec.json.encode(own, order="sorted").decode()
    return settings
