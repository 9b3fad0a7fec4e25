"""Reports that several forms render. To build a report takes longer than to render it."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cachemark.model.outcome import Outcome
from cachemark.model.run_header import RunHeader
from cachemark.report import formats
from cachemark.report.model import Report
from cachemark.report.series import ExportedRun
from cachemark.report.stored_run import StoredRun


def build_once(monkeypatch: pytest.MonkeyPatch, built: dict[str, Any]) -> None:
    """Keep in `built` what forms render, and take it from there while the run's files are equal."""
    load, export = formats.load_report, formats.build_exported_run

    def loaded(run: StoredRun) -> Report:
        return _once(built, _content(run.folder), lambda: load(run))

    def exported(header: RunHeader, outcomes: Sequence[Outcome]) -> ExportedRun:
        values = hashlib.sha256(msgspec.json.encode((header, outcomes))).hexdigest()
        return _once(built, values, lambda: export(header, outcomes))

    monkeypatch.setattr(formats, "load_report", loaded)
    monkeypatch.setattr(formats, "build_exported_run", exported)


def _content(folder: Path) -> str:
    content = hashlib.sha256()
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        content.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return content.hexdigest()


def _once(built: dict[str, Any], key: str, make: Callable[[], Any]) -> Any:
    if key not in built:
        built[key] = make()
    return built[key]
