"""Figures of unusual runs are the same in every form: few sittings, two sets, loads, withheld."""

import csv
import io
import json
import random
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cachemark.model.experiment import Load, RoundsTiming
from cachemark.model.outcome import Cell, Outcome, Withheld
from cachemark.report.formats import render
from cachemark.runs.storage.store import Run
from tests.builders import rounds as made
from tests.builders.outcomes import experiment, header
from tests.builders.stored_runs import kept
from tests.report.test_one_figure_one_value import FIGURES

CLOSED, PACED = Load(name="one"), Load(name="paced", schedule="poisson", rate=500)
TWO = [["a", "b"]]
THIRTEEN = [["r", "s", *"abcdef"], ["r", "s", *"ghijk"]]
_NS = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}
_FIGURE = re.compile(r"([\d.]+) (ns|µs|ms|s)(?: −([\d.]+)/\+([\d.]+) %| ±([\d.]+) %)?")
# A figure, its lower and its upper end.
_Ends = list[float | None]


def _sitting(names: list[str], load: Load, block: int, part: int) -> list[Outcome]:
    draw = random.Random(f"{block} {part} {load.name}")
    cells = [Cell(client=of, server="embedded", workload="mixed", load=load.name) for of in names]
    rates = [(9_000 + 30 * ord(name)) * draw.gauss(1, 0.02) for name in names]
    cpu_us = 20 * draw.uniform(0.8, 1.2)
    sliced = made.sitting(len(cells), 2, lambda arm, _before, _at: rates[arm], block, cpu_us)
    found: list[Outcome] = []
    for cell, slices, rate in zip(cells, sliced, rates, strict=True):
        times = [round(1e9 / rate * draw.lognormvariate(0, 0.4)) for _ in range(sum(slices.ops))]
        one = made.outcome(cell, block, cells, slices, times, part=part)
        found.append(msgspec.structs.replace(one, load=load))
    return found


def _without(outcome: Outcome, percents: Collection[float]) -> Outcome:
    held = [
        Withheld(kind="", percent=of, rule="steal", ns=100_000, moved_ns=60_000, limit_ns=20_000)
        for of in percents
    ]
    is_held = outcome.trial.cell.client == "a"
    return msgspec.structs.replace(outcome, withheld=held) if is_held else outcome


def _run(
    folder: Path, sets: list[list[str]], sittings: int, loads: list[Load], held: Collection[float]
) -> Run:
    outcomes = [
        _without(outcome, held)
        for load in loads
        for block in range(sittings)
        for part, names in enumerate(sets)
        for outcome in _sitting(names, load, block, part)
    ]
    clients = list(dict.fromkeys(name for names in sets for name in names))
    planned = msgspec.structs.replace(
        experiment(clients, sittings),
        design="rounds",
        loads=loads,
        rounds=RoundsTiming(until="fixed"),
    )
    return kept(folder / "results", header(planned), outcomes)


def _in_text(cell: str) -> _Ends:
    """A figure in ns with both ends, as it is printed; without any where it is a dash."""
    found = _FIGURE.fullmatch(cell)
    if found is None:
        assert cell == "–"
        return [None, None, None]
    value = float(found[1]) * _NS[found[2]]
    if found[5]:
        factor = 1 + float(found[5]) / 100
        return [value, value / factor, value * factor]
    if not found[3]:
        return [value, None, None]
    return [value, value * (1 - float(found[3]) / 100), value * (1 + float(found[4]) / 100)]


def _rankings(text: str, split: str) -> list[dict[str, dict[str, str]]]:
    """The rows of each ranking of a text by their first column, each by its headings."""
    found: list[dict[str, dict[str, str]]] = []
    heads: list[str] = []
    for line in text.splitlines():
        columns = re.split(split, line.strip("| "))
        if "client CPU/op" in columns:
            heads = columns
            found.append({})
        elif len(columns) != len(heads):
            heads = []
        elif not set(line) <= set("|-: "):
            found[-1][columns[0]] = dict(zip(heads, columns, strict=True))
    return found


def _exact(row: dict[str, Any], figure: str) -> _Ends:
    """The figure in ns, as JSON has it."""
    of = row["summary"]
    if "CPU" in figure:
        times = of["client_cpu_us" if figure.startswith("client") else "server_cpu_us"]
        return [times[end] and 1e3 * times[end] for end in ("value", "low", "high")]
    times = of["total"]["response"]["intervals"].get(str(float(figure[1:])))
    return [times[end] for end in ("value", "low", "high")] if times else [None] * 3


@pytest.mark.parametrize(
    ("sets", "sittings", "loads", "held"),
    [
        pytest.param(TWO, 1, [CLOSED], (), id="1 sitting"),
        pytest.param(TWO, 2, [CLOSED], (), id="2 sittings"),
        pytest.param(THIRTEEN, 2, [CLOSED], (), id="13 arms"),
        pytest.param(TWO, 4, [CLOSED, PACED], (), id="a closed and an open load"),
        pytest.param(TWO, 5, [CLOSED], (99.0, 99.9), id="withheld"),
    ],
)
def test_unusual_runs_have_the_same_figures_in_all_forms(
    tmp_path: Path, sets: list[list[str]], sittings: int, loads: list[Load], held: tuple[float, ...]
) -> None:
    run = _run(tmp_path, sets, sittings, loads, held)
    lines = list(csv.DictReader(io.StringIO(render("csv", run, None))))
    of_csv = {(of["client"], of["load"]): of for of in lines if of["operation"] == "all"}
    forms = [_rankings(render("table", run, 400), r" {2,}")]
    forms += [_rankings(render("markdown", run, None), r" *\| *")]
    groups = json.loads(render("json", run, None))["groups"]
    assert [len(of) for of in forms] == [len(loads)] * 2
    for at, group in enumerate(groups):
        for row in group["rows"]:
            for figure, (column, unit) in FIGURES.items():
                want = _exact(row, figure)
                line = of_csv[row["name"], group["load"]]
                texts = [line[f"{column}{end}"] for end in ("", "_low", "_high")]
                # CSV has percentiles in ns, CPU time in µs.
                told = [float(of) * 1e3 / unit if of else None for of in texts]
                assert told == pytest.approx(want, rel=1e-3), (row["name"], figure)
                for form in forms:
                    shown = _in_text(form[at][row["name"]][figure])
                    assert shown == pytest.approx(want, rel=0.015), (row["name"], figure)
        assert (_exact(group["rows"][-1], "p99") == [None] * 3) or not held
