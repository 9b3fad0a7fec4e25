"""Reports of JMH's figures: every form, and what stands in it."""

import csv
import io
import json
from pathlib import Path

import pytest

from cachemark.model.jmh import JmhSettings
from cachemark.report.jmh import RENDERERS, JmhReport, build
from tests.builders.jmh_report import entry, measured, original_report
from tests.golden import assert_golden

GOLDEN = Path(__file__).parent / "golden" / "jmh"


@pytest.fixture(scope="module")
def original() -> JmhReport:
    return original_report()


def test_a_row_has_the_modes_side_by_side(original: JmhReport) -> None:
    text, binary = "| java/folsom | text | set-get", "| java/spymemcached | binary | set-get"
    table = RENDERERS["markdown"](original, None)
    assert f"{text} | 9..12 B | 32 | 20.0 k ±0.1 % | 500 µs | 990 µs | – |" in table
    assert f"{binary} | 9..12 B | 32 | 812 | – | – | – |" in table


def test_without_the_mode_of_times_their_columns_are_absent() -> None:
    settings = JmhSettings(modes=("throughput",))
    report = build([measured("java/folsom", entry("thrpt", "get"))], settings, "memcached")
    assert "| client | wire | operation | value | threads | ops/s |\n" in (
        RENDERERS["markdown"](report, None)
    )
    assert not any("sampled" in note for note in report.notes)


@pytest.mark.parametrize("form", RENDERERS)
def test_a_form_is_as_it_was(original: JmhReport, form: str) -> None:
    assert_golden(form, RENDERERS[form](original, 120), GOLDEN / f"original.{form}")


@pytest.mark.parametrize("form", RENDERERS)
def test_published_figures_stand_beside_those_of_today(original: JmhReport, form: str) -> None:
    text = RENDERERS[form](original, 200)
    for figure in ("30478.462", "1000.297", "measureAsciiFolsomAsync", "643531", "0.018"):
        assert figure in text


@pytest.mark.parametrize("form", RENDERERS)
def test_other_work_is_beside_nothing_published(form: str) -> None:
    report = build([measured("java/folsom", entry("thrpt", "get"))], JmhSettings(), "memcached")
    assert report.sections == []
    assert "measureAscii" not in RENDERERS[form](report, 120)


def test_a_line_of_csv_has_both_modes_and_both_pages(original: JmhReport) -> None:
    first, defaults, binary = csv.DictReader(io.StringIO(RENDERERS["csv"](original, None)))
    assert first["published_benchmark"] == "measureAsciiFolsomAsync"
    assert (first["ops_per_s"], first["published_ops_per_s"]) == ("20000.0", "30478.462")
    assert (first["calls"], first["mean_s"], first["error_s"]) == ("368", "0.000812", "")
    assert (first["p99_s"], first["p99.9_s"], first["published_p99.9_s"]) == (
        "0.00099", "", "0.013",
    )  # fmt: skip
    assert defaults["published_ops_per_s"] == "30478.462"
    assert (binary["published_benchmark"], binary["error_per_s"]) == ("measureBinarySpyAsync", "")


def test_json_has_the_settings_and_what_failed(original: JmhReport) -> None:
    document = json.loads(RENDERERS["json"](original, None))
    assert document["settings"]["iterations"] == 3
    assert document["rows"][0]["times"]["percentiles_s"]["50.0"] == 0.0005
    assert document["failures"] == original.failures
    assert document["jvm"] == ["JMH 1.37, A VM 17.0.1"]


def test_no_text_of_a_program_is_markup(original: JmhReport) -> None:
    assert "[bold]<b>no</b>" in RENDERERS["table"](original, 120)
    assert "<b>no" not in RENDERERS["html"](original, None)
    assert "<b>no" not in RENDERERS["markdown"](original, None)


def test_the_page_plots_each_score_beside_the_published_one(original: JmhReport) -> None:
    bars = original.sections[0].bars
    assert [(bar.label, bar.published) for bar in bars][:3] == [
        ("measureAsciiFolsomAsync", True),
        ("measureAsciiFolsomAsync", False),
        ("measureAsciiFolsomAsync, java/folsom@defaults", False),
    ]
    assert RENDERERS["html"](original, None).count("<figure") == 1
