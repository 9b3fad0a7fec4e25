"""Reads outcomes of format 1, which cachemark 0.1.0 wrote, with the field names of format 2.

Format 2 came with version 2 of the worker protocol.
"""

from typing import Any

_DONE = {
    "lag": "send_lag",
    "late": "generator_lag",
    "bound": "queued",
    "beyond": "overflow",
    "course": "timeline",
}
# Renamed fields: the path to their object, and their old and new names.
_RENAMED: dict[tuple[str, ...], dict[str, str]] = {
    (): {"steadiness": "stationarity"},
    ("stationarity",): {"levels": "plateaus"},
    ("prefill",): _DONE,
    ("warmup",): _DONE,
    ("measure",): _DONE,
}
_CAPABILITIES = {"course": "timeline"}


def from_format_1(outcome: dict[str, Any]) -> dict[str, Any]:
    """Return an outcome of format 1, decoded from JSON, in format 2."""
    for path, names in _RENAMED.items():
        outcome = _renamed(outcome, path, names)
    return {**_with_capabilities(outcome), "format": 2}


def _renamed(value: Any, path: tuple[str, ...], names: dict[str, str]) -> Any:
    if not isinstance(value, dict):
        return value
    if not path:
        return {names.get(name, name): field for name, field in value.items()}
    first, *rest = path
    if first not in value:
        return value
    return {**value, first: _renamed(value[first], tuple(rest), names)}


def _with_capabilities(outcome: dict[str, Any]) -> dict[str, Any]:
    match outcome:
        case {"worker": {"capabilities": list(names)} as worker}:
            capabilities = [_CAPABILITIES.get(name, name) for name in names]
            return {**outcome, "worker": {**worker, "capabilities": capabilities}}
        case _:
            return outcome
