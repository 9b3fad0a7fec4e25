"""Figures of several blocks or sittings, and of open loops, derived again from their lines.

As in test_figures_again.py, whose reader knows one trial of a cell. Here a cell has several: its
rate is their geometric mean, a percentile is of all their times together, counts are added. The
ratio of two arms is the geometric mean of their ratios in each sitting.
"""

import csv
import io
import json
import math
from collections import Counter
from pathlib import Path

import pytest

from tests.cli.in_process import Inside, Said
from tests.report.built_once import build_once
from tests.report.histogram_reader import at_percentile
from tests.report.stored_line import Line, shown, too_few
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

    def times(self, kind: str) -> Counter[int]:
        return sum((line.times(kind) for line in self.of(kind)), Counter[int]())

    def cpu_us(self, side: str) -> float:
        each = [line.cpu_us(side) or 0.0 for line in self.lines]
        return geometric_mean(each) if min(each) else 0.0

    def evictions(self) -> int:
        return sum(line.evictions() for line in self.lines)


def geometric_mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def cells_by_client(lines: list[Line]) -> dict[str, Cell]:
    """The trials of each client in the order of their blocks; a second arm is a client too."""
    found: dict[str, list[Line]] = {}
    for line in sorted(lines, key=lambda line: line.raw["trial"]["block"]):
        found.setdefault(line.raw["trial"]["cell"]["client"], []).append(line)
    return {client: Cell(of) for client, of in found.items()}


def rates_of_arms(cells: dict[str, Cell], client: str, kind: str = "all") -> list[float]:
    """The rate of a client in each block: of one that is played twice, by both of its arms."""
    own = [line.rate(kind) if kind in (*line.operations, "all") else 0.0
           for line in cells[client].lines]  # fmt: skip
    if (again := cells.get(f"{client}#again")) is None:
        return own
    parts = [(one.rate(), other.rate())
             for one, other in zip(cells[client].lines, again.lines, strict=True)]  # fmt: skip
    return [rate * math.sqrt(b / a) for rate, (a, b) in zip(own, parts, strict=True)]


def check_bounds(row: dict[str, str], lines: list[Line], kind: str, percent: str) -> None:
    """Compare the range of a percentile, or the interval that a trial with few operations asks."""
    ends = [row[f"response_p{percent}_ns_{end}"] for end in ("low", "high")]
    times = [line.times(kind) for line in lines]
    if any(too_few(of.total(), float(percent)) for of in times):
        told = row[f"response_p{percent}_ns"]
        assert ends == ["", ""] or float(ends[0]) <= float(told) <= float(ends[1])
    else:
        each = [at_percentile(of, percent) for of in times]
        assert list(map(float, ends)) == [min(each), max(each)], (kind, percent)


def check_cell(inside: Inside, cells: dict[str, Cell], client: str) -> None:
    cell = cells[client]
    table = list(csv.DictReader(io.StringIO(form(inside, "csv"))))
    rows = {row["operation"]: row for row in table if row["client"] == client}
    kinds = sorted({kind for line in cell.lines for kind in line.operations})
    for kind in [*(kinds if len(kinds) > 1 else []), "all"]:
        row, rates = rows[kind], rates_of_arms(cells, client, kind)
        mean = geometric_mean(rates) if min(rates) else sum(rates) / len(rates)
        assert int(row["ok"]) == cell.succeeded(kind), kind
        assert int(row["not_stored"]) == cell.count("not_stored", kind), kind
        assert float(row["ops_per_s"]) == pytest.approx(mean, rel=1e-5, abs=1e-3)
        if min(rates):
            # The range is of the first arm's trials, at the level of both.
            own = [line.rate(kind) for line in cell.lines]
            level = mean / geometric_mean(own)
            ends = [float(row[f"ops_per_s_{end}"]) for end in ("low", "high")]
            again = [level * min(own), level * max(own)]
            assert ends == pytest.approx(again, rel=1e-5, abs=1e-3), kind
        times = cell.times(kind)
        for percent in ("50", "90", "99", "99.9"):
            if text := row[f"response_p{percent}_ns"]:
                assert float(text) == at_percentile(times, percent), (kind, percent)
            check_bounds(row, cell.of(kind), kind, percent)
    for side in ("client", "server"):
        told = float(rows["all"][f"{side}_cpu_us_per_op"] or 0)
        assert told == pytest.approx(cell.cpu_us(side), rel=1e-3), side
    assert int(rows["all"]["evictions"]) == cell.evictions()
    (group,) = json.loads(form(inside, "json"))["groups"]
    totals = {row["summary"]["cell"]["client"]: row["summary"]["total"] for row in group["rows"]}
    rate = geometric_mean(rates_of_arms(cells, client))
    assert totals[client]["rate"]["value"] == pytest.approx(rate, rel=1e-6)
    assert totals[client]["ok"] == cell.succeeded()
    for name in ("table", "markdown", "html"):
        assert shown(rate) in form(inside, name)


def check_exported_trials(inside: Inside, cells: dict[str, Cell], client: str) -> None:
    """Compare what other programs read: each trial for itself."""
    lines, name = cells[client].lines, client.replace("/", ":")
    entries = json.loads(form(inside, "google-benchmark"))["benchmarks"]
    go = [it.split() for it in form(inside, "go-bench").splitlines()
          if f"/client={name}/op=all-" in it]  # fmt: skip
    (result,) = [it for it in json.loads(form(inside, "hyperfine"))["results"]
                 if it["parameters"]["client"] == client]  # fmt: skip
    own = [it for it in entries if it["name"].endswith(f"/{client}")]
    each_s = [line.window["elapsed_ns"] / line.succeeded() / 1e9 for line in lines]
    assert result["times"] == pytest.approx(each_s)
    assert result["mean"] == pytest.approx(sum(each_s) / len(each_s))
    assert [it["iterations"] for it in own] == [line.succeeded() for line in lines]
    assert [int(words[1]) for words in go] == [line.succeeded() for line in lines]
    rates = [line.rate() for line in lines]
    assert [it["items_per_second"] for it in own] == pytest.approx(rates, rel=1e-6)
    assert [float(words[words.index("ops/s") - 1]) for words in go] == pytest.approx(rates, 1e-5)


def check_ratios(inside: Inside, cells: dict[str, Cell]) -> None:
    """Compare the ratio of the two clients, by every figure that sums or means give."""
    (group,) = json.loads(form(inside, "json"))["rounds"]["groups"]
    seen = set[str]()
    for ranking in group["rankings"]:
        figure, (pair,) = ranking["figure"], ranking["pairs"]
        names = [pair[side]["client"] for side in ("first", "second")]
        if figure == "rate":
            each = [rates_of_arms(cells, name) for name in names]
        elif figure in ("client-cpu", "server-cpu"):
            side = figure.removesuffix("-cpu")
            each = [[line.cpu_us(side) or 0.0 for line in cells[name].lines] for name in names]
        else:
            continue
        again = geometric_mean([one / other for one, other in zip(*each, strict=True)])
        assert pair["ratio"]["value"] == pytest.approx(again, rel=1e-5), figure
        assert pair["counts"] == [len(each[0]), len(cells[names[0]].lines)]
        seen.add(figure)
    assert seen == {"rate", "client-cpu", "server-cpu"}


def play_turns(inside: Inside, sittings: int, work: str) -> Said:
    """Play two clients in turns."""
    clients = "--client native --client python/pymemcache --server embedded"
    short = f"--blocks {sittings} --set timing.warmup_ms=100 --set rounds.until=fixed"
    options = f"{clients} {short} --set noise=note --set design=rounds {work}"
    return inside("run", *options.split())


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
    check_cell(inside, cells_by_client(lines), "native")


@pytest.mark.parametrize("mix", ["mget=3,mset=1", "get=3,set_noreply=1", "cas=1,get=1"])
def test_batches_in_turns_are_told_as_they_were_stored(
    mix: str, inside: Inside, tmp_path: Path
) -> None:
    ended = play_turns(inside, 1, f"--mix {mix} --set workloads.run=7 --keys 90 --measure-ms 700")
    assert ended.returncode in (0, 1), ended.stderr
    check(inside, told_as_valid(tmp_path))


@pytest.mark.parametrize("mix", ["get=9,set=1", "cas=1,get=1"])
def test_several_sittings_are_told_as_they_were_stored(
    mix: str, inside: Inside, tmp_path: Path
) -> None:
    ended = play_turns(inside, 2, f"--mix {mix} --keys 9 --threads 2 --measure-ms 500")
    lines = told_as_valid(tmp_path)
    assert [line.raw["state"] for line in lines] == ["measured"] * 6, ended.stderr
    cells = cells_by_client(lines)
    with pytest.MonkeyPatch.context() as patch:
        build_once(patch, {})
        for client in ("native", "python/pymemcache"):
            check_cell(inside, cells, client)
            check_exported_trials(inside, cells, client)
        check_ratios(inside, cells)
