"""Each figure that people compare has one value and one uncertainty, in every form of a report.

The forms are read as people and programs read them: nothing of the renderers is imported but the
way to call them.
"""

import csv
import html
import io
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cachemark.cli.exit_status import OK
from cachemark.model.client_name import REPEAT_SUFFIX
from cachemark.model.experiment import RoundsTiming
from cachemark.model.outcome import Cell, Outcome
from cachemark.report import compare
from cachemark.report.compare import CellFilter, compare_within_run
from cachemark.report.csv_text import interval_texts
from cachemark.report.formats import render
from cachemark.runs.storage.store import Run
from tests.builders import rounds as made
from tests.builders.outcomes import experiment, header
from tests.builders.stored_runs import kept
from tests.cli.in_process import Inside
from tests.web.serving import Visitor, served

CLIENTS = {"slow": 10_000.0, "fast": 15_000.0}
# The slow client is played twice; its second arm has a level of its own.
ARMS = {**CLIENTS, f"slow{REPEAT_SUFFIX}": 10_300.0}
SITTINGS = 6
# The heading in tables, the columns of CSV, and how many of CSV's units a microsecond has.
FIGURES = {
    "p50": ("response_p50_ns", 1000),
    "p99": ("response_p99_ns", 1000),
    "p99.9": ("response_p99.9_ns", 1000),
    "client CPU/op": ("client_cpu_us_per_op", 1),
    "server CPU/op": ("server_cpu_us_per_op", 1),
}
_US = {"ns": 1e-3, "µs": 1.0, "ms": 1e3, "s": 1e6}
_FIGURE = re.compile(r"([\d.]+) (ns|µs|ms|s) −([\d.]+)/\+([\d.]+) %")


def _outcomes() -> list[Outcome]:
    cells = [Cell(client=c, server="embedded", workload="mixed", load="one") for c in ARMS]
    found: list[Outcome] = []
    for block in range(SITTINGS):
        draw = random.Random(block)
        speed = draw.uniform(0.7, 1.0)
        rates = [speed * rate * draw.gauss(1, 0.02) for rate in ARMS.values()]
        cpu_us = 20 * draw.uniform(0.8, 1.2)
        sliced = made.sitting(
            len(cells), 12, lambda arm, _before, _number, f=rates: f[arm], block, cpu_us
        )
        for cell, slices, rate in zip(cells, sliced, rates, strict=True):
            times = [round(1e9 / rate * draw.lognormvariate(0, 0.4)) for _ in range(4000)]
            found.append(made.outcome(cell, block, cells, slices, times))
    return found


@pytest.fixture
def run(tmp_path: Path) -> Run:
    planned = msgspec.structs.replace(
        experiment(list(CLIENTS), SITTINGS),
        design="rounds",
        twice="slow",
        rounds=RoundsTiming(until="fixed"),
        margin_percent=5.0,
    )
    return kept(tmp_path / "results", header(planned), _outcomes())


def _in_text(cell: str) -> tuple[float, float, float]:
    """A figure in µs with its lower and its upper end, as it is printed."""
    found = _FIGURE.fullmatch(cell)
    assert found is not None, cell
    value = float(found[1]) * _US[found[2]]
    return value, value * (1 - float(found[3]) / 100), value * (1 + float(found[4]) / 100)


def _markdown(text: str) -> dict[str, dict[str, str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    start = next(at for at, row in enumerate(rows) if "client CPU/op" in row)
    return {row[0]: dict(zip(rows[start], row, strict=True)) for row in rows[start + 2 :][:2]}


def _terminal(text: str) -> dict[str, dict[str, str]]:
    """Columns are apart by two blanks or more."""
    lines = [re.split(r" {2,}", line.strip()) for line in text.splitlines()]
    start = next(at for at, row in enumerate(lines) if "client CPU/op" in row)
    return {row[0]: dict(zip(lines[start], row, strict=True)) for row in lines[start + 1 :][:2]}


def _tables(text: str) -> list[list[dict[str, str]]]:
    """The rows of each table of a page, by heading."""
    found: list[list[dict[str, str]]] = []
    for table in re.findall(r"<table.*?</table>", text, re.S):
        heads, *rows = [
            [
                " ".join(html.unescape(re.sub(r"<[^>]+>", "", cell)).split())
                for cell in re.findall(r"<t[hd][ >].*?</t[hd]>", row, re.S)
            ]
            for row in re.findall(r"<tr.*?</tr>", table, re.S)
        ]
        found.append([dict(zip(heads, row, strict=True)) for row in rows])
    return found


def _html(text: str) -> dict[str, dict[str, str]]:
    rows = next(rows for rows in _tables(text) if "client CPU/op" in rows[0])
    return {row["client"]: row for row in rows}


def _from_json(text: str) -> dict[str, dict[str, Any]]:
    (group,) = json.loads(text)["groups"]
    found: dict[str, dict[str, Any]] = {}
    for row in group["rows"]:
        of = row["summary"]
        times = of["total"]["response"]["intervals"]
        found[row["name"]] = {
            "p50": times["50.0"],
            "p99": times["99.0"],
            "p99.9": times["99.9"],
            "client CPU/op": of["client_cpu_us"],
            "server CPU/op": of["server_cpu_us"],
        }
    return found


@pytest.fixture
def visitor(run: Run) -> Iterator[Visitor]:
    with served(run.folder.parent) as visitor:
        yield visitor


def test_all_forms_show_the_same_figures_and_their_uncertainty(run: Run, visitor: Visitor) -> None:
    exact = _from_json(render("json", run, None))
    lines = csv.DictReader(io.StringIO(render("csv", run, None)))
    of_csv = {line["client"]: line for line in lines if line["operation"] == "all"}
    texts = {
        "terminal": _terminal(render("table", run, 300)),
        "markdown": _markdown(render("markdown", run, None)),
        "html": _html(render("html", run, None)),
        "page of the run": _html(visitor.get("/runs/made").text),
        "page of its report": _html(visitor.get("/runs/made/report").text),
    }
    for client in CLIENTS:
        for name, (column, unit) in FIGURES.items():
            want = [exact[client][name][end] for end in ("value", "low", "high")]
            assert want[1] < want[0] < want[2], (client, name)
            told = [float(of_csv[client][column + end]) for end in ("", "_low", "_high")]
            assert told == pytest.approx(want, rel=1e-3), (client, name)
            for form, rows in texts.items():
                shown = _in_text(rows[client][name])
                wanted = [each / unit for each in want]
                assert shown == pytest.approx(wanted, rel=0.01), (form, client, name)


def test_csv_has_the_ratio_and_its_bound(run: Run) -> None:
    (group,) = json.loads(render("json", run, None))["groups"]
    (ratio,) = [row["comparison"]["ratio"] for row in group["rows"] if not row["fastest"]]
    lines = list(csv.DictReader(io.StringIO(render("csv", run, None))))
    of = {line["client"]: line for line in lines if line["operation"] == "all"}
    assert (of["fast"]["ratio_to_first"], of["fast"]["ratio_to_first_low"]) == ("1", "")
    for end, name in (("", "value"), ("_low", "low"), ("_high", "high")):
        assert float(of["slow"][f"ratio_to_first{end}"]) == pytest.approx(ratio[name], rel=1e-5)
    assert group["itself_bound"] > 1
    for line in of.values():
        assert float(line["itself_bound"]) == pytest.approx(group["itself_bound"], rel=1e-5)


def test_a_comparisons_csv_has_the_bound(run: Run) -> None:
    wanted = CellFilter(client=("slow", "fast"))
    outcomes = list(run.outcomes())
    compared = compare_within_run(run.header, outcomes, wanted, ("rate",), 5.0)
    (line,) = csv.DictReader(io.StringIO(compare.RENDERERS["csv"](compared, None)))
    ((of,),) = [row.comparisons for row in compared.rows]
    assert of.bound > 1
    assert float(line["bound"]) == pytest.approx(of.bound, rel=1e-5)
    corrected = interval_texts(of.together)[1:]
    assert [line["together_low"], line["together_high"]] == corrected


def test_the_webs_comparison_and_history_show_the_reports_figures(
    run: Run, visitor: Visitor
) -> None:
    exact = {name: of["p99"] for name, of in _from_json(render("json", run, None)).items()}
    ends = {
        name: tuple(of[end] / 1000 for end in ("value", "low", "high"))
        for name, of in exact.items()
    }
    page = visitor.get("/compare?baseline=made&first=slow&second=fast").text
    (p99,) = [rows[0] for rows in _tables(page) if "less is better" in rows[0]]
    assert _in_text(p99["baseline"]) == pytest.approx(ends["slow"], rel=0.01)
    assert _in_text(p99["other"]) == pytest.approx(ends["fast"], rel=0.01)
    ratio = exact["fast"]["value"] / exact["slow"]["value"]
    assert float(p99["ratio (95 %)"].split()[0]) == pytest.approx(ratio, abs=0.001)
    for client in CLIENTS:
        (rows,) = _tables(visitor.get(f"/history?name={client}").text)
        assert _in_text(rows[0]["p99"]) == pytest.approx(ends[client], rel=0.01)


def test_pair_gate_and_history_show_the_figures_of_the_report(run: Run, inside: Inside) -> None:
    exact = _from_json(render("json", run, None))
    compared = inside(
        *("compare", "made", "--client", "slow", "--client", "fast", "--format", "json"),
        *("--gate", "p99", "--gate", "p99.9"),
    )
    assert compared.returncode == OK, compared.stderr
    (row,) = json.loads(compared.stdout)["rows"]
    figures = {of["figure"]: of for of in row["comparisons"]}
    for name in ("p99", "p99.9"):
        values = {
            figures[name][side]["client"]: figures[name][f"{side}_value"]["value"]
            for side in ("first", "second")
        }
        assert values == {client: exact[client][name]["value"] for client in CLIENTS}
        fast, slow = values["fast"], values["slow"]
        assert figures[name]["ratio"]["value"] == pytest.approx(fast / slow, rel=1e-3)
        assert figures[name]["ratio"]["low"] < fast / slow < figures[name]["ratio"]["high"]
    for client in CLIENTS:
        past = inside(*("history", client, "--figure", "p99.9", "--format", "json"))
        assert past.returncode == OK, past.stderr
        (line,) = json.loads(past.stdout)["lines"]
        (entry,) = line["entries"]
        want, shown = exact[client]["p99.9"], entry["figures"]["p99.9"]
        ends = ("value", "low", "high")
        assert [shown[end] for end in ends] == pytest.approx([want[end] for end in ends])


def test_rate_of_a_client_played_twice_is_of_both_arms(run: Run, inside: Inside) -> None:
    whole = json.loads(render("json", run, None))
    (group,) = whole["groups"]
    table = {row["name"]: row["summary"]["total"]["rate"] for row in group["rows"]}
    ends = ("value", "low", "high")
    lines = csv.DictReader(io.StringIO(render("csv", run, None)))
    of_csv = {line["client"]: line for line in lines if line["operation"] == "all"}
    compared = inside("compare", "made", "--client", "slow", "--client", "fast", "--format", "json")
    (row,) = json.loads(compared.stdout)["rows"]
    rate = next(of for of in row["comparisons"] if of["figure"] == "rate")
    sides = {"slow": rate["second_value"], "fast": rate["first_value"]}
    kept(run.folder.parent, msgspec.structs.replace(run.header, id="again"), _outcomes())
    again = inside("compare", "made", "again", "--client", "slow", "--format", "json")
    (stored,) = json.loads(again.stdout)["rows"]
    sides["slow, stored"] = stored["comparisons"][0]["first_value"]
    table["slow, stored"] = table["slow"]
    for client, of in sides.items():
        assert [of[end] for end in ends] == pytest.approx([table[client][end] for end in ends])
    assert rate["ratio"]["value"] == pytest.approx(table["fast"]["value"] / table["slow"]["value"])
    for client in CLIENTS:
        told = [float(of_csv[client][f"ops_per_s{end}"]) for end in ("", "_low", "_high")]
        assert told == pytest.approx([table[client][end] for end in ends])
        past = inside("history", client, "--figure", "rate", "--format", "json")
        for entry in json.loads(past.stdout)["lines"][0]["entries"]:
            shown = entry["figures"]["rate"]
            assert [shown[of] for of in ends] == pytest.approx([table[client][of] for of in ends])
    (places,) = [
        of["places"] for of in whole["rounds"]["groups"][0]["rankings"] if of["figure"] == "rate"
    ]
    slow = next(of for of in places if of["name"] == "slow")
    assert table["slow"]["value"] == pytest.approx(slow["value"])
    assert slow["value"] > 1.01 * slow["own"]
