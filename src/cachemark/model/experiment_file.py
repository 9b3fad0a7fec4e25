"""TOML text, within limits → experiment. An error names the file, the line and the remedy."""

import re
import tomllib
from pathlib import Path
from typing import Any, cast

import msgspec

from cachemark.model.errors import UsageError, refusing
from cachemark.model.experiment import Experiment, Workload
from cachemark.model.experiment_checks import check
from cachemark.model.experiment_document import expand_factors, with_trace_defaults
from cachemark.model.experiment_settings import example_of, in_words, known_settings

_MAX_CHARACTERS = 4 * 2**20
# An experiment needs three.
_MAX_PARTS = 8
_PART = r"(?:[A-Za-z0-9_-]++|\"(?:[^\"\\\n]|\\.)*+\"|'[^'\n]*+')"
_DOT = r"[ \t]*+\.[ \t]*+"
_DEEP_KEY = re.compile(rf"(?<![\w-])(?:{_PART}{_DOT}){{{_MAX_PARTS},}}{_PART}[ \t]*+[=\]]")


def parse(text: str, where: str) -> Experiment:
    """Read an experiment from TOML text; `where` names the file in messages. Raises UsageError."""
    check_toml(text, where)
    with refusing(f"{where}: not TOML", decodes=True):
        document = tomllib.loads(text)
    document, written_in = expand_factors(document, where)
    tables = document.get("workloads")
    if isinstance(tables, list):
        document["workloads"] = [
            with_trace_defaults(table) if isinstance(table, dict) else table
            for table in cast("list[Any]", tables)
        ]
    if "until_valid" in document:
        document = {"blocks": document["until_valid"], **document}
    try:
        experiment = msgspec.convert(document, Experiment)
    except msgspec.ValidationError as error:
        raise _with_location(error, text, where, written_in) from error
    check(experiment, where)
    return experiment


def load(path: Path) -> Experiment:
    """Read an experiment file. Raises UsageError."""
    experiment = parse(read_toml(path), str(path))
    workloads = [_beside(workload, path.parent) for workload in experiment.workloads]
    return msgspec.structs.replace(experiment, workloads=workloads)


def _beside(workload: Workload, folder: Path) -> Workload:
    """The workload, whose trace may be in the current folder or beside the experiment's file."""
    if not workload.trace or Path(workload.trace).exists():
        return workload
    beside = folder / workload.trace
    return msgspec.structs.replace(workload, trace=str(beside)) if beside.exists() else workload


# msgspec names a location as `$.workloads[0].keys.count`, or `$.workloads[...]` inside a mapping.
_PLACE = re.compile(r" - at `\$?(?:key in )?(?P<path>[^`]*)`$")
_ONE = re.compile(r"^(loads|workloads)\[([0-9]+)\]")
_HEADER = re.compile(r"(?:(?P<array>\[\[)|\[)\s*(?P<name>[\w-]+)\s*[.\]]")
_UNKNOWN = re.compile(r"unknown field `(?P<field>[^`]+)`")


def _with_location(
    error: msgspec.ValidationError, text: str, where: str, written_in: dict[str, list[int]]
) -> UsageError:
    message = str(error)
    match = _PLACE.search(message)
    path = match["path"].lstrip(".") if match else ""
    path = _ONE.sub(lambda one: f"{one[1]}[{written_in[one[1]][int(one[2])]}]", path)
    what = message[: match.start()] if match else message
    unknown = _UNKNOWN.search(message)
    if unknown:
        path = f"{path}.{unknown['field']}".lstrip(".")
        what = "no such setting"
    line = _line_of(path, text)
    place = f"{where}:{line}" if line else where
    names = [part for part in re.split(r"[.\[\]]+", path) if part and not part.isdigit()]
    remedy = known_settings(names) if unknown else example_of(names)
    return UsageError(f"{place}: {path or 'experiment'}: {in_words(what)}", remedy)


def _line_of(path: str, text: str) -> int | None:
    """The line number of a setting: follows the table headers to the key; None if not found."""
    parts = [part for part in re.split(r"[.\[\]]+", path) if part and part != "..."]
    names = [part for part in parts if not part.isdigit()]
    if not names:
        return None
    index = next((int(part) for part in parts if part.isdigit()), 0)
    key = re.compile(rf"(^|[\[{{,.\s]){re.escape(names[-1])}\s*(=|\])")
    section, seen = "", -1
    best: int | None = None
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        header = _HEADER.match(stripped)
        if header:
            section = header["name"]
            if section == names[0] and header["array"]:
                seen += 1
        if section == names[0]:
            inside = seen in (-1, index)
            best = best or (number if inside else None)
        else:
            # Before the first table header: a top-level setting, or an inline table.
            inside = not section and (len(names) == 1 or stripped.startswith(names[0]))
        if inside and key.search(stripped):
            return number
    return best


def read_toml(path: Path) -> str:
    """The text of a TOML file, within the limits. Raises UsageError.

    Reads at most one character more than the limit: a device may have no end.
    """
    with refusing(f"{path}: cannot be read", decodes=True), path.open("rb") as file:
        text = file.read(4 * _MAX_CHARACTERS + 1).decode("utf-8")
    check_toml(text, str(path))
    return text


def check_toml(text: str, where: str) -> None:
    """Raise UsageError for text that is too long, or has a key of too many parts."""
    if len(text) > _MAX_CHARACTERS:
        raise UsageError(f"{where}: longer than {_MAX_CHARACTERS // 2**20} MiB")
    deep_key = _DEEP_KEY.search(text)
    if deep_key:
        line = text.count("\n", 0, deep_key.start()) + 1
        raise UsageError(f"{where}:{line}: a key of more than {_MAX_PARTS} parts")
