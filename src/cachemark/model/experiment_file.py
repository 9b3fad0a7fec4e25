"""TOML text → experiment. An error names the file, the line and the remedy."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import msgspec

from cachemark.model.errors import DECODE_ERRORS, UsageError
from cachemark.model.experiment import (
    Experiment,
    Keys,
    Load,
    Placement,
    QuickGrid,
    RoundsTiming,
    Timing,
    TomlTable,
    Values,
    Workload,
)
from cachemark.model.experiment_checks import check
from cachemark.model.toml_limits import check_toml


def parse(text: str, where: str) -> Experiment:
    """Read an experiment from TOML text; `where` names the file in messages. Raises UsageError."""
    check_toml(text, where)
    try:
        document = tomllib.loads(text)
    except DECODE_ERRORS as error:
        raise UsageError(f"{where}: not TOML: {error}") from error
    try:
        experiment = msgspec.convert(document, Experiment)
    except msgspec.ValidationError as error:
        raise _with_location(error, text, where) from error
    check(experiment, where)
    return experiment


def load(path: Path) -> Experiment:
    """Read an experiment file. Raises UsageError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error
    return parse(text, str(path))


# msgspec names a location as `$.workloads[0].keys.count`, or `$.workloads[...]` inside a mapping.
_PLACE = re.compile(r" - at `\$?(?:key in )?(?P<path>[^`]*)`$")
_HEADER = re.compile(r"(?:(?P<array>\[\[)|\[)\s*(?P<name>[\w-]+)\s*[.\]]")
_UNKNOWN = re.compile(r"unknown field `(?P<field>[^`]+)`")


def _with_location(error: msgspec.ValidationError, text: str, where: str) -> UsageError:
    message = str(error)
    found = _PLACE.search(message)
    path = found["path"].lstrip(".") if found else ""
    what = message[: found.start()] if found else message
    unknown = _UNKNOWN.search(message)
    if unknown:
        path = f"{path}.{unknown['field']}".lstrip(".")
        what = "no such setting"
    line = _line_of(path, text)
    place = f"{where}:{line}" if line else where
    return UsageError(f"{place}: {path or 'experiment'}: {what}", _remedy(path, bool(unknown)))


def _remedy(path: str, unknown: bool) -> str:
    if not unknown:
        return ""
    types: dict[str, type[TomlTable]] = {
        "workloads": Workload,
        "loads": Load,
        "keys": Keys,
        "values": Values,
        "timing": Timing,
        "placement": Placement,
        "rounds": RoundsTiming,
        "quick": QuickGrid,
    }
    parts = [re.sub(r"\[.*", "", part) for part in path.split(".")]
    owner = types.get(parts[-2], Experiment) if len(parts) > 1 else Experiment
    known = ", ".join(field.name for field in msgspec.structs.fields(owner))
    return f"known settings there: {known}"


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
