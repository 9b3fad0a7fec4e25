"""Named workloads (presets). The engine defines them; an experiment can refer to them."""

from __future__ import annotations

import subprocess
from typing import Any, TypeVar

import msgspec

from cachemark.model.errors import UsageError
from cachemark.model.experiment import Experiment, Keys, Values, Workload


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """A named workload: what it is, the source of its figures, and the engine's options."""

    about: str
    source: str
    assumed: str
    options: dict[str, str]


def load_presets(engine: str) -> dict[str, Preset]:
    """The presets of an engine, by name."""
    output = subprocess.run(
        [engine, "tape", "presets", "--json"], capture_output=True, check=True
    ).stdout
    return msgspec.json.decode(output, type=dict[str, Preset])


def expand(experiment: Experiment, engine: str) -> Experiment:
    """Replace presets by the settings that they stand for. Raises UsageError."""
    if not any(workload.preset for workload in experiment.workloads):
        return experiment
    presets = load_presets(engine)
    made = [_expanded(workload, presets) for workload in experiment.workloads]
    return msgspec.structs.replace(experiment, workloads=made)


def _expanded(workload: Workload, presets: dict[str, Preset]) -> Workload:
    if workload.preset is None:
        return workload
    preset = presets.get(workload.preset)
    if preset is None:
        raise UsageError(
            f"workload {workload.name!r}: no preset {workload.preset!r}",
            f"known presets: {', '.join(presets)}",
        )
    keys, values, whole = _settings(preset.options)
    if workload.mix or workload.sequence:
        whole.pop("mix", None)
    if workload.prefill != 1.0 or workload.hit_ratio is not None:
        whole.pop("prefill", None)
        whole.pop("hit_ratio", None)
    if workload.keys.names or workload.keys.pattern or workload.keys.length != Keys().length:
        keys.pop("pattern", None)
        keys.pop("length", None)
    filled = _with_preset(workload, whole)
    return msgspec.structs.replace(
        filled, keys=_with_preset(workload.keys, keys), values=_with_preset(workload.values, values)
    )


# For each option of a preset: the experiment's table, and the name of the setting there.
_PLACES: dict[str, tuple[str, str]] = {
    "keys": ("keys", "count"),
    "distribution": ("keys", "distribution"),
    "key-length": ("keys", "length"),
    "key-pattern": ("keys", "pattern"),
    "size": ("values", "size"),
    "mix": ("workload", "mix"),
    "prefill": ("workload", "prefill"),
    "hit-ratio": ("workload", "hit_ratio"),
    "exptime": ("workload", "exptime_s"),
}


def _settings(options: dict[str, str]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    tables: dict[str, dict[str, Any]] = {"keys": {}, "values": {}, "workload": {}}
    for option, text in options.items():
        table, name = _PLACES[option]
        tables[table][name] = _read(name, text)
    return tables["keys"], tables["values"], tables["workload"]


def _read(name: str, text: str) -> Any:
    if name == "count":
        return int(text.replace("k", "000").replace("M", "000000"))
    if name in ("prefill", "hit_ratio"):
        return float(text)
    if name == "mix":
        shares = (entry.split("=") for entry in text.split(","))
        return {kind: float(weight) for kind, weight in shares}
    return text


_Settings = TypeVar("_Settings", Workload, Keys, Values)


def _with_preset(given: _Settings, preset: dict[str, Any]) -> _Settings:
    """Take over the preset's settings, but only where `given` has the default value."""
    defaults: dict[str, Any] = {
        field.name: field.default
        if field.default_factory is msgspec.NODEFAULT
        else field.default_factory()
        for field in msgspec.structs.fields(given)
    }
    unset = {n: setting for n, setting in preset.items() if getattr(given, n) == defaults[n]}
    return msgspec.structs.replace(given, **unset)
