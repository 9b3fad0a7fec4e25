"""`--set PATH=VALUE`: any setting of an experiment file, checked as in the file.

A path names the tables of the file, such as `loads.refill` or `workloads.keys.length`: it changes
the setting in every workload, or in every load. The grammar of the work is that of the options of
`cachemark drive` (`10k`, `16..40`).
"""

import re
import tomllib
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

import msgspec
from cyclopts.completion import CompletionContext

from cachemark.host import process
from cachemark.model.errors import DECODE_ERRORS, UsageError, refusing
from cachemark.model.experiment import Experiment
from cachemark.model.experiment_document import FACTORS, expand_factors
from cachemark.model.experiment_settings import TABLES, example_of, in_words, schema_of
from cachemark.model.presets import load_presets
from cachemark.model.work_settings import kept_cold, read_options

# The tables that a path may name, and the settings of each that no path reaches.
_PLACES = {
    "": "",
    "workloads": "workloads.",
    "keys": "workloads.keys.",
    "values": "workloads.values.",
    "loads": "loads.",
    "measure": "loads.measure.",
    "timing": "timing.",
    "rounds": "rounds.",
    "placement": "placement.",
}
# Settings that may be a list, as in a file. Numbers of threads are an option, which names loads.
_FACTORS = {f"{of}.{name}" for of, names in FACTORS.items() for name in names} - {"loads.threads"}
_EVERY = "docs/experiment.md has every setting"
_NOT_SET = {"name", "in_process", "workloads.loads", *_PLACES, "quick"}


def _names(paths: str) -> dict[str, str]:
    """The name that each path sets: its last word, or the one behind `=`."""
    parts = (path.partition("=") for path in paths.split())
    return {path: name or path.rpartition(".")[2] for path, _, name in parts}


# Work whose text the engine reads, as it reads the option of `cachemark drive`.
ENGINE_PATHS = _names("""
    workloads.mix workloads.order workloads.sequence workloads.key_step workloads.run
    workloads.prefill workloads.hit_ratio workloads.exptime_s=exptime workloads.records
    workloads.preset workloads.trace workloads.trace_format workloads.trace_columns=columns
    workloads.trace_gets=gets workloads.trace_left_out=left_out workloads.keys.count=keys
    workloads.keys.counters workloads.keys.distribution workloads.keys.length=key_length
    workloads.keys.pattern=key_pattern workloads.keys.names=key_names workloads.values.size
    workloads.values.compressibility loads.schedule loads.think loads.rate
""")
# Settings that change more than themselves, such as the names of loads: `overrides.apply` does.
_OVERRIDES = _names("""
    clients=client servers=server rank seed blocks until_valid margin_percent=margin noise twice
    awake design search workloads.ops workloads.fill_percent=fill loads.processes loads.threads
    loads.connections loads.depth loads.refill loads.wire timing.warmup_ms timing.measure_ms
    timing.timeout_ms rounds.slice_ms rounds.until placement.server=server_cpus
    placement.worker=worker_cpus
""")
# No setting of a file: it multiplies the length of workloads that end by themselves.
SCALE = "scale"

# The path of each name that messages write as an option.
OPTIONS = {
    field.replace("_", "-"): path
    for path, field in {**ENGINE_PATHS, **_OVERRIDES, SCALE: SCALE}.items()
}
_ANY_OPTION = "|".join(sorted(OPTIONS, key=len, reverse=True))
# An option, and the value that a remedy gives it.
_NAMED = re.compile(rf"--({_ANY_OPTION})\b(?![-\w])(?: ([0-9][0-9.]*|trials|rounds)\b)?")


class TypedSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Typed settings: fields of `Overrides`, and the other paths with their values."""

    overrides: dict[str, Any] = {}
    others: tuple[tuple[str, Any], ...] = ()


def paths() -> dict[str, type[msgspec.Struct]]:
    """Every path, and the table that its setting stands in."""
    found = {
        f"{prefix}{field.name}": TABLES[table]
        for table, prefix in _PLACES.items()
        for field in msgspec.structs.fields(TABLES[table])
        if f"{prefix}{field.name}" not in _NOT_SET and field.name not in ("name", *_PLACES)
    }
    return {**found, SCALE: Experiment}


def typed_settings(typed: Iterable[str]) -> TypedSettings:
    """Read `PATH=VALUE`. Raises UsageError, which names the path."""
    overrides: dict[str, Any] = {}
    others: dict[str, Any] = {}
    known = paths()
    for word in typed:
        path, equals, text = word.partition("=")
        if path not in known:
            near = get_close_matches(path, known, n=3) or ["loads.wire", "timing.warmup_ms"]
            raise UsageError(f"--set {path}: no such setting", f"there are {', '.join(near)}, …")
        if not equals:
            raise UsageError(f"--set {path}: a value is missing", f"write --set {path}=VALUE")
        if path in _FACTORS and isinstance(values := _readings(text)[0], list):
            of = _type_of(known[path], path)
            others[path] = values = [_listed(path, value, of) for value in values]
            overrides |= _completing(path, values)
        elif path in ENGINE_PATHS:
            overrides[ENGINE_PATHS[path]] = text
        elif path == SCALE:
            overrides[SCALE] = _converted(path, text, float)
        else:
            value = _converted(path, text, _type_of(known[path], path))
            if name := _OVERRIDES.get(path):
                overrides[name] = _as_option(path, value)
            else:
                others[path] = value
    return TypedSettings(overrides=overrides, others=tuple(others.items()))


def _listed(path: str, value: Any, of: Any) -> Any:
    """A value of a list; a text as the engine reads it behind the option. Raises UsageError."""
    if isinstance(value, str) and (name := ENGINE_PATHS.get(path)):
        read = read_options(process.binary_path(), [f"--{name.replace('_', '-')}={value}"])
        value = (read.workload | read.load)[path.rpartition(".")[2]]
        value = int(value) if isinstance(value, float) and value.is_integer() else value
    remedy = example_of(path.split(".")) or _EVERY
    with refusing(f"--set {path}={value!r}", remedy, decodes=True):
        msgspec.convert(value, of)
    return value


def _completing(path: str, values: list[Any]) -> dict[str, Any]:
    """One value of a list as its option, which completes and refuses what the option does."""
    numbers = [value for value in values if isinstance(value, int | float)]
    one = max(numbers) if numbers else next(iter(values), None)
    name = {**ENGINE_PATHS, **_OVERRIDES}.get(path)
    return {name: str(one) if path in ENGINE_PATHS else one} if name and one is not None else {}


@contextmanager
def named_by_path(options: Iterable[str]) -> Generator[None]:
    """Errors of this context name settings without an option of `options` by their paths."""
    own = set(options)

    def renamed(match: re.Match[str]) -> str:
        name, value = match[1], match[2]
        if name in own:
            return match[0]
        return f"--set {OPTIONS[name]}{f'={value}' if value else ''}"

    try:
        yield
    except UsageError as error:
        text, remedy = (_NAMED.sub(renamed, part) for part in (error.text, error.remedy))
        raise UsageError(text, remedy) from error


def with_others(experiment: Experiment, others: Sequence[tuple[str, Any]]) -> Experiment:
    """The experiment with these settings, and a workload or load for each value of a list.

    Raises UsageError for a table that it does not have, and for wrong values of a list.
    """
    for path, value in others:
        experiment = _changed(experiment, path.split("."), value, path)
    document = expand_factors(msgspec.to_builtins(experiment), "--set").document
    with refusing("--set", _EVERY, decodes=True):
        made = msgspec.convert(document, Experiment)
    if "workloads.prefill" not in dict(others):
        return made
    return msgspec.structs.replace(made, workloads=[*map(kept_cold, made.workloads)])


def set_paths(context: CompletionContext) -> list[str]:
    """The paths, and behind `=` the values that a setting may have."""
    path, equals, _ = context.incomplete.partition("=")
    if not equals:
        return [f"{path}=" for path in paths()]
    return [f"{path}={value}" for value in _choices(path)]


def _choices(path: str) -> list[str]:
    table = paths().get(path)
    if table is None:
        return []
    if path == "workloads.preset":
        return list(load_presets(process.binary_path()))
    shape = schema_of(table).get(path.rpartition(".")[2], {})
    shapes = [shape, *shape.get("anyOf", [])]
    if any(each.get("type") == "boolean" for each in shapes):
        return ["true", "false"]
    return [str(value) for each in shapes for value in each.get("enum", []) if value is not None]


def _type_of(table: type[msgspec.Struct], path: str) -> Any:
    """The type of a setting; one load for each of several numbers of threads."""
    name = path.rpartition(".")[2]
    of = next(field.type for field in msgspec.structs.fields(table) if field.name == name)
    return of | list[of] if path == "loads.threads" else of


def _converted(path: str, text: str, of: Any) -> Any:
    """A value as the file would have it; quotes may be left out."""
    failure = ""
    for value in _readings(text):
        try:
            return msgspec.convert(value, of)
        except msgspec.ValidationError as error:
            failure = failure or in_words(str(error))
    raise UsageError(f"--set {path}={text}: {failure}", _EVERY)


def _readings(text: str) -> list[Any]:
    try:
        return [tomllib.loads(f"value = {text}")["value"], text]
    except DECODE_ERRORS:  # no TOML, a number of thousands of digits, or a deep table
        return [text]


def _as_option(path: str, value: Any) -> Any:
    values = [value] if path == "loads.threads" and not isinstance(value, list) else value
    return tuple(values) if isinstance(values, list) else value


def _changed(of: Any, names: list[str], value: Any, path: str) -> Any:
    """A table, or each table of a list, with the setting that the names lead to."""
    if isinstance(of, list):
        tables: list[Any] = of
        return [_changed(table, names, value, path) for table in tables]
    if of is None:
        raise UsageError(f"--set {path}: the experiment has no such table", "write it in a file")
    first, *rest = names
    new = _changed(getattr(of, first), rest, value, path) if rest else value
    return msgspec.structs.replace(of, **{first: new})
