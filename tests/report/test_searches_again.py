"""Every figure of a search's report, derived again from the stored lines by a reader of its own.

The reader has the words of `docs/experiment.md` only: a search halves the range between a rate that
met the objective and one that did not. It imports nothing of `analysis` and `report`.
"""

import html
import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import scipy

from cachemark.model.histogram import Histogram
from tests.cli.in_process import Inside
from tests.conftest import cli_in
from tests.report.histogram_reader import at_percentile
from tests.report.stored_line import Line, shown
from tests.report.test_figures_again import form, read_lines

pytestmark = pytest.mark.slow("plays open loops at several rates, twice")
# Callers disturb each other's cas, so some operations are answered and store nothing.
SEARCH = (
    *("--client", "native", "--server", "embedded", "--search", "p50<10s", "--blocks", "2"),
    *("--mix", "cas=1,get=1", "--keys", "2", "--threads", "8", "--measure-ms", "400"),
    *("--set", "timing.warmup_ms=0", "--set", "noise=note"),
)
# States in which a trial is no answer about the server. Verdicts have tests of their own.
SPOILED = ("limited by this generator", "not judged")
DASH = "–"


def shown_time(ns: float) -> str:
    for factor, suffix in ((1e9, " s"), (1e6, " ms"), (1e3, " µs")):
        if ns >= 0.9995 * factor:
            return f"{shown(ns / factor)}{suffix}"
    return f"{ns:.0f} ns"


class Played:
    """A trial of a search: what was offered, what was done, and whether it met the objective."""

    def __init__(self, line: Line, below_ns: float) -> None:
        self.line, self.block = line, line.raw["trial"]["block"]
        self.rate: float = line.raw["load"]["rate"] or 0.0
        self.done = line.rate()
        self.offered = self.done * line.count("ok") / line.succeeded()
        self.p50 = at_percentile(line.times(), "50")
        self.spoiled = ""
        self.missed = self._missed(below_ns)

    def _missed(self, below_ns: float) -> str:
        if self.line.raw["verdict"] in ("OVERLOAD", "NON_STATIONARY"):
            return f"{self.line.raw['verdict']}: {'; '.join(self.line.raw['reasons'])}"
        if failed := self.line.count("attempts") - self.line.count("ok"):
            return f"{failed} errors"
        return f"p50 {shown_time(self.p50)}" if self.p50 >= below_ns else ""

    @property
    def result(self) -> str:
        return self.spoiled or self.missed or "met"

    def row(self) -> list[str]:
        figures = [shown(self.rate), shown(self.done), shown_time(self.p50)]
        return ["native", str(self.block + 1), *figures, self.result]


class Searched:
    """One search, followed again by the documented rule."""

    def __init__(self, plays: list[Played]) -> None:
        self.closed = next(play.offered for play in plays if not play.rate)
        self.plays = [play for play in plays if play.rate]
        self.best, self.above = 0.0, self.closed
        while self.above - self.best > 0.03 * self.closed:
            middle = (self.best + self.above) / 2
            rate = float(f"{middle:.3g}")
            met = self.met(rate)
            if met is None:
                break
            self.best, self.above = (rate, self.above) if met else (self.best, rate)

    def at(self, rate: float) -> list[Played]:
        return [play for play in self.plays if play.rate == rate]

    def met(self, rate: float) -> bool | None:
        """Two of three plays decide, three of five at the end; None if it was not played."""
        plays = self.at(rate)
        spoiled = sum(bool(play.spoiled) for play in plays)
        missed = sum(bool(play.missed) and not play.spoiled for play in plays)
        met = len(plays) - spoiled - missed
        if not plays or (spoiled == 1 and met == missed == 0):
            return None
        return met >= 3 > missed or (missed < 2 and spoiled < 2 and met > missed)

    def next_result(self) -> str:
        tried = self.at(self.above)
        told = [play for play in tried if play.missed and not play.spoiled]
        return (told or tried[-1:])[0].result if tried else ""


def interval(searches: list[Searched], best: float) -> tuple[float, float] | None:
    """All middles of a logistic curve of ln(rate) that are near enough to the likeliest one."""
    plays = [play for search in searches for play in search.plays if not play.spoiled]
    if len(plays) < 4:
        return None
    logs = [math.log(play.rate) for play in plays]
    start, end = min(logs) - math.log(1.5), max(logs) + math.log(1.5)
    middles = [start + (end - start) * at / 800 for at in range(801)]

    def likelihood(middle: float, width: float, disturbed: float) -> float:
        total = 0.0
        for play, log in zip(plays, logs, strict=True):
            curve = 1 / (1 + math.exp(-max(-50.0, min(50.0, (log - middle) / width))))
            chance = min(max(disturbed + (1 - disturbed) * curve, 1e-6), 1 - 1e-6)
            total += math.log(chance if play.missed else 1 - chance)
        return total

    curves = [(width, part) for width in (0.02, 0.04, 0.08, 0.16) for part in (0, 0.05, 0.1, 0.2)]
    best_of = [max(likelihood(middle, *curve) for curve in curves) for middle in middles]
    degrees = len(searches) if len(searches) > 1 else len(plays) - 2
    fall = scipy.stats.t.ppf(0.975, degrees) ** 2 / 2
    likely = [at for at, each in enumerate(best_of) if each >= max(best_of) - fall]
    if likely[0] == 0 or likely[-1] == len(middles) - 1:
        return None
    return min(math.exp(middles[likely[0]]), best), max(math.exp(middles[likely[-1]]), best)


def figure(text: str) -> float:
    """A rate as it is shown, as a number."""
    digits, _, unit = text.partition(" ")
    return float(digits) * {"": 1, "k": 1e3, "M": 1e6}[unit]


def rounds_to(text: str, value: float) -> bool:
    """Whether a rate is shown as this text. Half of the last digit may be rounded either way."""
    digits, _, unit = text.partition(" ")
    step = 10.0 ** -len(digits.partition(".")[2]) * {"": 1, "k": 1e3, "M": 1e6}[unit]
    return abs(figure(text) - value) <= 0.500001 * step


def section(told: dict[str, Any], title: str) -> dict[str, Any]:
    (found,) = (each for each in told["sections"] if each["title"].startswith(title))
    return found


def read_searches(lines: list[Line], rows: list[list[str]], below_ns: float) -> list[Searched]:
    """The searches of the lines, one for each block; compares each step with its row."""
    plays = [Played(line, below_ns) for line in lines]
    steps = sorted((play for play in plays if play.rate), key=lambda play: (play.block, play.rate))
    for play, row in zip(steps, rows, strict=True):
        if row[-1].startswith(SPOILED):
            play.spoiled = row[-1]
        own = play.row()
        assert [*row[:3], *row[4:]] == [*own[:3], *own[4:]]
        assert rounds_to(row[3], play.done)
    blocks = sorted({play.block for play in plays})
    return [Searched([play for play in plays if play.block == block]) for block in blocks]


def check_found(row: list[str], searches: list[Searched]) -> None:
    """Compare the row of the answer: that of the search with the median rate."""
    ranked = sorted(searches, key=lambda search: search.best)
    typical = ranked[(len(ranked) - 1) // 2]
    client, best, ends, span, p50, above, result, closed = row
    assert client == "native"
    assert rounds_to(closed, typical.closed)
    if not typical.best:
        assert (best, ends, span, p50) == (DASH,) * 4
    else:
        assert best == shown(typical.best)
        assert span == f"{shown(ranked[0].best)}{DASH}{shown(ranked[-1].best)}"
        assert p50 == shown_time(typical.at(typical.best)[-1].p50)
        known = interval(searches, typical.best)
        assert (known is None) == (ends == DASH)
        if known is not None:
            # The grid of middles is another one.
            assert [figure(end) for end in ends.split(DASH)] == pytest.approx(known, rel=0.015)
    tried = typical.at(typical.above)
    assert above == (shown(typical.above) if tried else DASH)
    assert result == (typical.next_result().partition(":")[0] if tried else DASH)


def check_points(points: list[dict[str, Any]], searches: list[Searched]) -> None:
    """Compare the points of the plot: the steps that tell something, in their order of play."""
    told = [play for search in searches for play in search.plays if not play.spoiled]
    assert [point["rate"] for point in points] == [play.rate for play in told]
    assert [point["percentile_ns"] for point in points] == [play.p50 for play in told]


def check(inside: Inside, folder: Path, below_ns: float) -> list[Searched]:
    """Compare every form of the report with the lines."""
    told = json.loads(form(inside, "json"))
    steps = section(told, "Every step of the search")
    (found,) = section(told, "The highest rates with")["rows"]
    searches = read_searches(read_lines(folder), steps["rows"], below_ns)
    check_found(found, searches)
    check_points(steps["rate_points"], searches)
    words = {name: " ".join(form(inside, name).split()) for name in ("table", "answers")}
    pages = {name: html.unescape(form(inside, name)) for name in ("markdown", "html")}
    for row in [found, *steps["rows"]]:
        assert f"| {' | '.join(row)} |" in pages["markdown"]
        assert all(cell in pages["html"] and cell in words["table"] for cell in row)
    assert all(cell in words["answers"] for cell in found)
    sentence, *_ = told["answers"]  # then perhaps that the machine was loaded
    assert "nothing was found" not in sentence
    best, ends, span, p50 = found[1:5]
    if best != DASH:
        between = "" if ends == DASH else f"{ends}; "
        assert f"up to {best} ({between}{span} in 2 searches) operations per second" in sentence
        assert f"(p50 {p50}); " in sentence
    return searches


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a search in two blocks."""
    folder = tmp_path_factory.mktemp("searched")
    ended = cli_in(folder)("run", *SEARCH, timeout_s=1500)
    # On a busy machine every trial may be late: then no rate is found, which is status 1.
    assert ended.returncode in (0, 1), ended.stderr
    return folder


def copied(played: Path, folder: Path, change: Callable[[dict[str, Any]], None]) -> list[Line]:
    """A copy of the run with changed lines."""
    shutil.copytree(played / "results", folder / "results")
    lines = read_lines(folder)
    for line in lines:
        change(line.raw)
    (path,) = folder.glob("results/*/outcomes.jsonl")
    path.write_text("".join(json.dumps(line.raw) + "\n" for line in lines), encoding="utf-8")
    return lines


def undisturbed(raw: dict[str, Any]) -> None:
    """Take away what a busy machine has done to a trial, so that each says something."""
    raw.update(verdict="VALID", reasons=[], findings=[], withheld=[], noise=None)
    raw["measure"].update(send_lag=None, generator_lag=None)


def aim(folder: Path, objective: str) -> None:
    (path,) = folder.glob("results/*/run.json")
    header = json.loads(path.read_text(encoding="utf-8"))
    header["experiment"]["search"] = objective
    path.write_text(json.dumps(header), encoding="utf-8")


def test_a_search_is_told_as_it_was_stored(played: Path, inside: Inside, tmp_path: Path) -> None:
    lines = copied(played, tmp_path, lambda _: None)
    assert any(line.count("not_stored") for line in lines)
    check(inside, tmp_path, 10e9)


def test_where_each_rate_met_the_closed_loop_is_the_end(
    played: Path, inside: Inside, tmp_path: Path
) -> None:
    copied(played, tmp_path, undisturbed)
    searches = check(inside, tmp_path, 10e9)
    assert all(search.best == max(play.rate for play in search.plays) for search in searches)


def test_where_some_rates_missed_the_best_is_below_them(
    played: Path, inside: Inside, tmp_path: Path
) -> None:
    lines = copied(played, tmp_path, undisturbed)
    times = sorted(at_percentile(line.times(), "50") for line in lines)
    middle = times[len(times) // 2]
    aim(tmp_path, f"p50<{middle / 1000:.3f}us")
    searches = check(inside, tmp_path, middle)
    assert any(play.missed for search in searches for play in search.plays)


@pytest.mark.parametrize("wrong", ["divisor", "share", "rank"])
def test_a_wrong_figure_is_found(
    wrong: str, played: Path, inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied(played, tmp_path, undisturbed)
    right = Histogram.at_rank
    places: dict[str, tuple[str, Callable[..., float]]] = {
        "divisor": (
            "cachemark.analysis.rate_search.answered_rate",
            lambda _, window: sum(of.ok for of in window.operations.values()),
        ),
        "share": ("cachemark.analysis.rate_search.success_share", lambda _: 1.0),
        "rank": (
            "cachemark.model.histogram.Histogram.at_rank",
            lambda times, rank: right(times, min(times.count, 2 * rank)),
        ),
    }
    monkeypatch.setattr(*places[wrong])
    with pytest.raises(AssertionError):
        check(inside, tmp_path, 10e9)
