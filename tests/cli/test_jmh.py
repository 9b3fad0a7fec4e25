"""`cachemark jmh`: its clients, and where its figures go. No JVM is started."""

import importlib
from collections.abc import Generator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cachemark.endpoints.clients import ClientSpec, parse_client, registry
from cachemark.host import process
from cachemark.model.errors import TrialError, UsageError
from cachemark.model.jmh import JmhMeasurement, JmhSettings
from cachemark.runs import jmh
from tests.builders.jmh_report import entry, measured, resumable

CLIENTS = registry(process.binary_path())
MODULE: Any = importlib.import_module("cachemark.cli.jmh")


def test_the_original_has_clients_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    named: list[str] = []

    def note(spec: ClientSpec) -> None:
        named.append(spec.text)

    def ended(*_: object, **__: object) -> None:
        raise TrialError("ended here")

    monkeypatch.setattr(MODULE, "jar", note)
    monkeypatch.setattr(MODULE, "measurements", ended)
    with pytest.raises(TrialError):
        MODULE.jmh(times=MODULE.Iterations(original=True))
    assert named == ["java/spymemcached", "java/folsom", "java/xmemcached"]
    with pytest.raises(UsageError, match="no client was named"):
        MODULE.jmh()


@pytest.mark.parametrize("end", [KeyboardInterrupt, TrialError])
def test_finished_parts_are_printed_when_the_rest_is_not_measured(
    end: type[BaseException],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:

    def first_alone(*_: object, **__: object) -> Generator[JmhMeasurement]:
        yield measured("java/folsom", entry("thrpt", "get", score=12_345.6))
        raise end("ended here")

    def present(_: ClientSpec) -> None:
        """As if every jar were there."""

    monkeypatch.setattr(MODULE, "jar", present)
    monkeypatch.setattr(MODULE, "measurements", first_alone)
    kept = tmp_path / "jmh.json"
    with pytest.raises(end):
        MODULE.jmh("java/folsom", "java/xmemcached", output=MODULE.Output(json=kept))
    said = capsys.readouterr().out
    assert "12.3 k" in said
    assert "These are 1 of 8 benchmarks; play the rest" in said
    assert [one["primaryMetric"]["score"] for one in msgspec.json.decode(kept.read_bytes())] == [
        12_345.6
    ]


@pytest.mark.parametrize("form", ["table", "markdown", "csv", "json", "html"])
def test_what_a_file_has_is_shown_in_every_form(
    form: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """Nothing is left to play, so nothing is played: no server, no JVM."""

    def present(_: ClientSpec) -> None:
        """As if every jar were there."""

    monkeypatch.setattr(MODULE, "jar", present)
    monkeypatch.setattr(jmh, "jar", present)
    settings = JmhSettings(operations=("get",), modes=("throughput",))
    spec = parse_client("java/folsom", CLIENTS)
    (only,) = jmh.benchmarks(spec, settings)
    kept, out = tmp_path / "jmh.json", tmp_path / "new" / "out"
    kept.write_bytes(msgspec.json.encode([resumable(spec, only, settings)]))
    calls = MODULE.Calls(operation=("get",), mode=("throughput",))
    shown = MODULE.Output(form=form, out=out, json=kept, resume=True)
    assert MODULE.jmh("java/folsom", cell=calls, output=shown) == 0
    assert capsys.readouterr().out == ""
    text = out.read_text()
    assert "java/folsom" in text
    assert "812" in text


def test_figures_that_cannot_be_written_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They took minutes, and may be in no other file."""
    shown = MODULE.Output(form="html", out=tmp_path)
    with pytest.raises(UsageError, match=r"--out .*: cannot be written"):
        MODULE.show(
            [measured("java/folsom", entry("thrpt", "get"))], JmhSettings(), "memcached", shown
        )
    assert " 812 " in capsys.readouterr().out


def test_a_file_of_results_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def one(*_: object, **__: object) -> Generator[JmhMeasurement]:
        yield measured("java/folsom", entry("thrpt", "get"))

    def present(_: ClientSpec) -> None:
        """As if every jar were there."""

    monkeypatch.setattr(MODULE, "jar", present)
    monkeypatch.setattr(MODULE, "measurements", one)
    with pytest.raises(UsageError, match=r"--json .*: cannot be written"):
        MODULE.jmh("java/folsom", output=MODULE.Output(json=tmp_path))
