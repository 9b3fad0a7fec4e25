"""Named workloads (presets). The engine defines them; an experiment can refer to them."""

import subprocess
from typing import Any, TypeVar

import msgspec

from cachemark.model.errors import UsageError
from cachemark.model.experiment import Experiment, Keys, Values, Workload
from cachemark.model.setting_types import defaults_of
from cachemark.model.work_settings import WorkSettings, decode_settings


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """A named workload: what it is, the source of its figures, its options and its settings."""

    about: str
    source: str
    assumed: str
    options: dict[str, str]
    settings: msgspec.Raw

    def read(self) -> WorkSettings:
        """The settings that its options stand for."""
        return decode_settings(self.settings)


def load_presets(engine: str) -> dict[str, Preset]:
    """The presets of an engine, by name."""
    output = subprocess.run(
        [engine, "tape", "presets", "--json"], capture_output=True, check=True
    ).stdout
    return msgspec.json.decode(output, type=dict[str, Preset])


def find_preset(name: str, presets: dict[str, Preset], place: str) -> WorkSettings:
    """The settings of a preset. Raises UsageError."""
    if name not in presets:
        raise UsageError(f"{place}: no preset {name!r}", f"known presets: {', '.join(presets)}")
    return presets[name].read()


def expand(experiment: Experiment, engine: str) -> Experiment:
    """Replace presets by the settings that they stand for. Raises UsageError."""
    if not any(workload.preset for workload in experiment.workloads):
        return experiment
    presets = load_presets(engine)
    workloads = [_expanded(workload, presets) for workload in experiment.workloads]
    return msgspec.structs.replace(experiment, workloads=workloads)


def _expanded(workload: Workload, presets: dict[str, Preset]) -> Workload:
    if workload.preset is None:
        return workload
    settings = find_preset(workload.preset, presets, f"workload {workload.name!r}")
    keys, values, whole = dict(settings.keys), settings.values, dict(settings.workload)
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


_Settings = TypeVar("_Settings", Workload, Keys, Values)


def _with_preset(given: _Settings, preset: dict[str, Any]) -> _Settings:
    """`given`, with the preset's settings wherever it has the default value."""
    defaults = defaults_of(type(given), preset)
    unset = {n: setting for n, setting in preset.items() if getattr(given, n) == defaults[n]}
    return msgspec.structs.replace(given, **unset)
