"""Figures of several blocks, of open loops and of batches in turns, derived again from their lines.

As in test_figures_again.py, whose reader knows one trial of a cell. Here a cell has several: its
rate is their geometric mean, a percentile is of all their times together, counts are added.
"""

import csv
import io
import json
import math
from collections import Counter
from pathlib import Path

import pytest

from tests.cli.in_process import Inside
from tests.report.histogram_reader import at_percentile
from tests.report.stored_line import Line, shown
from tests.report.test_figures_again import (
    TRIAL,
    check,
    form,
    text_only,  # noqa: F401
    told_as_valid,
)

OPEN = ["--mix", "get=9,set=1", "--keys", "500", "--measure-ms", "700", "--rate", "900"]
# Name → the options of `cachemark run`.
LOADS = {
    "poisson": OPEN,
    "uniform": [*OPEN, "--set", "loads.schedule=uniform"],
    "bursts": [*OPEN, "--set", "loads.schedule=bursts:5:0.1:100ms"],
    "gpareto": [*OPEN, "--set", "loads.schedule=gpareto"],
}
BLOCKS = {
    "by time": ["--mix", "get=9,set=1", "--keys", "500", "--measure-ms", "500"],
    "by number": ["--mix", "get=1,set=1,cas=1", "--keys", "4", "--threads", "4", "--ops", "900"],
    "open": OPEN,
    # Of some kinds a trial may complete no operation.
    "a rare kind": ["--mix", "get=400,set=1", "--keys", "50", "--ops", "300"],
}


class Cell:
    """All trials of a cell."""

    def __init__(self, lines: list[Line]) -> None:
        self.lines = lines

    def count(self, name: str, kind: str) -> int:
        return sum(line.count(name, kind) for line in self.of(kind))

    def of(self, kind: str) -> list[Line]:
        return [line for line in self.lines if kind == "all" or kind in line.operations]

    def succeeded(self, kind: str = "all") -> int:
        return sum(line.succeeded(kind) for line in self.of(kind))

    def rate(self, kind: str = "all") -> float:
        rates = [line.rate(kind) if line in self.of(kind) else 0.0 for line in self.lines]
        if min(rates) == 0:
            return sum(rates) / len(rates)
        return math.exp(sum(map(math.log, rates)) / len(rates))

    def times(self, kind: str) -> Counter[int]:
        return sum((line.times(kind) for line in self.of(kind)), Counter[int]())

    def cpu_us(self, side: str) -> float:
        each = [line.cpu_us(side) or 0.0 for line in self.lines]
        return math.exp(sum(map(math.log, each)) / len(each)) if min(each) else 0.0


def check_cell(inside: Inside, cell: Cell) -> None:
    table = list(csv.DictReader(io.StringIO(form(inside, "csv"))))
    rows = {row["operation"]: row for row in table}
    kinds = sorted({kind for line in cell.lines for kind in line.operations})
    for kind in [*(kinds if len(kinds) > 1 else []), "all"]:
        row = rows[kind]
        assert int(row["ok"]) == cell.succeeded(kind), kind
        assert int(row["not_stored"]) == cell.count("not_stored", kind), kind
        assert float(row["ops_per_s"]) == pytest.approx(cell.rate(kind), rel=1e-5, abs=1e-3)
        times = cell.times(kind)
        for percent in ("50", "90", "99", "99.9"):
            if text := row[f"response_p{percent}_ns"]:
                assert float(text) == at_percentile(times, percent), (kind, percent)
    for side in ("client", "server"):
        told = float(rows["all"][f"{side}_cpu_us_per_op"] or 0)
        assert told == pytest.approx(cell.cpu_us(side), rel=1e-3), side
    (group,) = json.loads(form(inside, "json"))["groups"]
    (told,) = [row["summary"]["total"] for row in group["rows"]]
    assert told["rate"]["value"] == pytest.approx(cell.rate(), rel=1e-6)
    assert told["ok"] == cell.succeeded()
    for name in ("table", "markdown", "html"):
        assert shown(cell.rate()) in form(inside, name)


@pytest.mark.parametrize("load", LOADS)
def test_an_open_loop_is_told_as_it_was_stored(load: str, inside: Inside, tmp_path: Path) -> None:
    ended = inside("run", *TRIAL, *LOADS[load])
    lines = told_as_valid(tmp_path)
    assert [line.raw["state"] for line in lines] == ["measured"], ended.stderr
    check(inside, lines)


@pytest.mark.parametrize("work", BLOCKS)
def test_several_blocks_are_told_as_they_were_stored(
    work: str, inside: Inside, tmp_path: Path
) -> None:
    ended = inside("run", *[{"1": "3"}.get(word, word) for word in TRIAL], *BLOCKS[work])
    lines = told_as_valid(tmp_path)
    assert [line.raw["state"] for line in lines] == ["measured"] * 3, ended.stderr
    check_cell(inside, Cell(lines))


@pytest.mark.parametrize("mix", ["mget=3,mset=1", "get=3,set_noreply=1", "cas=1,get=1"])
def test_batches_in_turns_are_told_as_they_were_stored(
    mix: str, inside: Inside, tmp_path: Path
) -> None:
    common = ["--client", "native", "--client", "python/pymemcache", "--server", "embedded"]
    short = "--blocks 1 --set timing.warmup_ms=100 --set rounds.until=fixed --set noise=note"
    work = ["--mix", mix, "--set", "workloads.run=7", "--keys", "90", "--measure-ms", "700"]
    ended = inside("run", *common, *short.split(), "--set", "design=rounds", *work)
    assert ended.returncode in (0, 1), ended.stderr
    check(inside, told_as_valid(tmp_path))
