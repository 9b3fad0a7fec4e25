"""Work that was typed as options: read by the engine, put into the workloads of an experiment.

The engine parses the options, as `cachemark-engine drive` does, so there is one grammar.
"""

import re
import subprocess
from collections.abc import Sequence
from typing import Any

import msgspec

from cachemark.model.errors import UsageError, engine_error_text
from cachemark.model.experiment import Keys, Load, Workload
from cachemark.model.experiment_document import with_trace_defaults
from cachemark.model.setting_types import defaults_of
from cachemark.model.work_length import begins_cold

# Settings that say which operations are played: a new one replaces the others.
_SOURCES = ("mix", "sequence", "trace")
_OF_TRACES = ("trace_format", "trace_columns", "trace_gets", "trace_left_out")
_KEY_SHAPES = ("length", "pattern", "names")
_LONGEST_NAME = 60


class WorkSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings by name, for each table of an experiment."""

    workload: dict[str, Any] = {}
    keys: dict[str, Any] = {}
    values: dict[str, Any] = {}
    load: dict[str, Any] = {}

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.changes_work or self.load)

    @property
    def changes_work(self) -> bool:
        """Whether there is any setting besides the load's."""
        return bool(self.workload or self.keys or self.values)


def read_options(engine: str, words: Sequence[str]) -> WorkSettings:
    """The settings that workload options stand for. Raises UsageError that names the option."""
    if not words:
        return WorkSettings()
    command = [engine, "tape", "settings", "--", *words]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise UsageError(engine_error_text(ended.stderr))
    return decode_settings(ended.stdout.encode())


def decode_settings(text: bytes | msgspec.Raw) -> WorkSettings:
    """Read settings that the engine printed, where a mix is a list of pairs, since order counts."""
    settings = msgspec.json.decode(text, type=WorkSettings)
    if "mix" not in settings.workload:
        return settings
    mix = dict(settings.workload["mix"])
    return msgspec.structs.replace(settings, workload={**settings.workload, "mix": mix})


def with_settings(
    workload: Workload, typed: WorkSettings, preset: WorkSettings | None = None
) -> Workload:
    """The workload with the typed settings. A typed trace or preset replaces its work.

    A warm-up would fill a cache that begins cold: such a workload has none unless typed.
    """
    if not typed.changes_work:
        return workload
    base = workload
    if preset is not None or "trace" in typed.workload:
        base = Workload(name=workload.name, loads=workload.loads)
    if preset is not None:
        base = _changed(base, preset)
    work = with_trace_defaults(typed.workload)
    changed = _changed(base, msgspec.structs.replace(typed, workload=work))
    return msgspec.structs.replace(kept_cold(changed), name=typed_name(workload.name, typed))


def kept_cold(workload: Workload) -> Workload:
    """A workload that begins cold without a warm-up, unless it has its own; others as they are."""
    if begins_cold(workload) and workload.warmup_ms is None:
        return msgspec.structs.replace(workload, warmup_ms=0)
    return workload


def load_settings(load: Load, typed: WorkSettings) -> dict[str, Any]:
    """The changes of a load by typed options. A rate alone means Poisson arrivals."""
    changes = dict(typed.load)
    if "rate" in changes and "schedule" not in changes and load.schedule == "closed":
        changes["schedule"] = "poisson"
    return changes


def typed_name(name: str, typed: WorkSettings) -> str:
    """A name for a workload whose settings were typed, such as `get-95-set-5-1k`."""
    work = typed.workload
    parts = [name]
    if "trace" in work:
        parts = [re.split(r"[/.]", str(work["trace"]).rpartition("/")[2])[0]]
        parts += ["cache-aside"] if work.get("trace_gets") == "cache-aside" else []
    elif "preset" in work:
        parts = [work["preset"]]
    elif "mix" in work:
        parts = [f"{kind}-{weight:g}" for kind, weight in work["mix"].items()]
    elif "sequence" in work:
        parts = [*work["sequence"]]
    parts += [typed.values["size"]] if "size" in typed.values else []
    parts += [f"{_short(typed.keys['count'])}-keys"] if "count" in typed.keys else []
    text = re.sub(r"[^A-Za-z0-9._-]+", "-", "-".join(parts)).strip("-.")
    return text[:_LONGEST_NAME] or name


def _short(count: int) -> str:
    """Such as 100k or 5M, if that is exact."""
    for factor, suffix in ((10**6, "M"), (10**3, "k")):
        if count % factor == 0:
            return f"{count // factor}{suffix}"
    return str(count)


def _changed(workload: Workload, settings: WorkSettings) -> Workload:
    work = {name: value for name, value in settings.workload.items() if name != "preset"}
    for source in _SOURCES:
        if source in work:
            work = {**defaults_of(Workload, [s for s in _SOURCES if s != source]), **work}
    if "mix" in work or "sequence" in work:
        work = {**defaults_of(Workload, ["preset", *_OF_TRACES, "key_step", "order"]), **work}
    if "prefill" in work or "hit_ratio" in work:
        work = {**defaults_of(Workload, ["prefill", "hit_ratio"]), **work}
    keys = dict(settings.keys)
    shapes = [name for name in _KEY_SHAPES if name in keys]
    if shapes or "count" in keys:
        dropped = [name for name in _KEY_SHAPES if name not in shapes] if shapes else ["names"]
        keys = {**defaults_of(Keys, dropped), **keys}
    return msgspec.structs.replace(
        workload,
        **work,
        keys=msgspec.structs.replace(workload.keys, **keys),
        values=msgspec.structs.replace(workload.values, **settings.values),
    )
