"""The report of a run that was played in turns, in every form."""

import random
import re
import shlex
import shutil
from collections.abc import Generator
from functools import cache
from pathlib import Path

import msgspec
import pytest

from cachemark.model.experiment import RoundsTiming
from cachemark.model.outcome import Cell, Outcome
from cachemark.report import formats
from cachemark.report.compare import CellFilter, compare_within_run
from cachemark.report.conclusions import one_sentence
from cachemark.report.formats import (
    PLOT_SUFFIXES,
    draw_plots,
    draw_summary,
    format_names,
    load_report,
    render,
    render_files,
)
from cachemark.report.plots import plots
from cachemark.runs.storage.store import Run, open_run
from tests.builders import rounds as made
from tests.builders.outcomes import experiment, header
from tests.builders.stored_runs import kept
from tests.report.built_once import build_once

CLIENTS = ("slow", "fast", "slow#again")
SERVERS = ("embedded", "memcached")
RATES = {"slow": 10_000, "fast": 15_000, "slow#again": 10_000}


@cache  # Most tests show the same run.
def outcomes(blocks: int, squares: int = 2, apart: str = "") -> list[Outcome]:
    """Sittings of two sets, one for each server; each machine's speed differs from the last.

    The client `apart` does not follow the machine.
    """
    found: list[Outcome] = []
    noise = random.Random(1)
    for block in range(blocks):
        for server in SERVERS:
            cells = [Cell(client=c, server=server, workload="mixed", load="one") for c in CLIENTS]
            speed = noise.uniform(0.3, 1.0)
            factor = [
                RATES[c.client]
                * (noise.gauss(1, 0.1) if c.client == apart else speed * noise.gauss(1, 0.01))
                for c in cells
            ]
            slices = made.sitting(
                len(cells), squares, lambda arm, _before, _number, f=factor: f[arm], seed=block
            )
            times = [50_000 + noise.randrange(20_000) for _ in range(1000)]
            found += [
                made.outcome(cell, block, cells, own, times)
                for cell, own in zip(cells, slices, strict=True)
            ]
    return found


def run_of(folder: Path, blocks: int, squares: int = 2, apart: str = "") -> Run:
    planned = msgspec.structs.replace(
        experiment(["slow", "fast"], blocks),
        servers=list(SERVERS),
        twice="slow",
        design="rounds",
        rounds=RoundsTiming(until="fixed"),
        margin_percent=5.0,
    )
    return kept(folder, header(planned), outcomes(blocks, squares, apart))


def test_a_client_off_the_machines_pace_has_slope_and_interval(
    tmp_path: Path,
) -> None:
    text = render("markdown", run_of(tmp_path, 6, squares=4, apart="fast"), None)
    row = next(line for line in text.splitlines() if re.match(r"\| fast · memcached .* to ", line))
    slope = row.split("|")[3].replace("−", "-")
    value, low, high = map(float, re.findall(r"-?\d+\.\d+", slope))
    assert low < 0 < high < 0.9
    assert low < value < high


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_of(tmp_path_factory.mktemp("run"), 6)


@pytest.fixture(scope="module", autouse=True)
def built_once() -> Generator[None]:
    """All forms show the same values."""
    with pytest.MonkeyPatch.context() as patch:
        build_once(patch, {})
        yield


@pytest.mark.parametrize("blocks", [1, 3])
def test_nobody_is_first_on_too_few_sittings(tmp_path: Path, blocks: int) -> None:
    said = one_sentence(load_report(run_of(tmp_path, blocks)))
    assert said.startswith("No answer yet: it takes 4 sittings, and this run has ")
    assert one_sentence(load_report(run_of(tmp_path / "more", 4))).startswith("fast is first")


@pytest.mark.parametrize("blocks", [3, 4])
def test_an_interval_within_few_sittings_is_in_no_ranking(tmp_path: Path, blocks: int) -> None:
    few = run_of(tmp_path, blocks)
    text = render("markdown", few, None)
    (ratio, *_) = re.findall(r"\| slow \|(?:[^|]*\|){2} (\d\.\d\d[^|]*) \|", text)
    assert bool(re.fullmatch(r"0\.\d\d \(.*–.*\)", ratio)) == (blocks == 4)
    found = compare_within_run(
        few.header, few.outcomes(), CellFilter(client=("slow", "fast")), ("rate",), 5.0
    )
    missing = [note for note in found.notes if note.startswith("no answer within")]
    assert missing == ["no answer within 3 sittings: 4 sittings are needed"] * (blocks == 3)
    assert not any("vary too much" in note for note in found.notes)
    assert {bool(of.together) for row in found.rows for of in row.comparisons} == {False}


def test_the_answers_are_those_of_the_sittings(run: Run) -> None:
    text = " ".join(render("answers", run, 200).split())
    assert "fast has the highest rate: 1.50" in text or "fast has the highest rate: 1.5" in text
    assert "slow played twice" in text
    assert "embedded to memcached" in text
    report = formats.load_report(run)
    assert report.rounds is not None
    assert report.rounds.sittings == 6
    for group in report.groups:
        assert [row.summary.cell.client for row in group.rows] == ["fast", "slow"]
        assert group.lead is not None
        assert (group.lead.answer, group.lead.first.client) == ("better", "fast")
        assert group.rows[1].comparison is not None
        assert group.rows[1].comparison.ratio is not None
        assert group.rows[1].comparison.ratio.value == pytest.approx(2 / 3, rel=0.02)
    assert not [note for note in report.notes if "timeline" in note or "resume" in note]


@pytest.mark.parametrize("own_folder", [False, True])
def test_commands_name_a_run_so_that_it_is_found(
    run: Run, own_folder: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "my runs" if own_folder else Path("results")
    shutil.copytree(run.folder, root / run.folder.name)
    stored = open_run(run.folder.name, root)
    _, _, after = render("answers", stored, 200).partition("Compare two of them:\n")
    _, verb, named, *_ = shlex.split(after.splitlines()[0])
    assert (verb, named) == ("compare", str(stored.folder) if own_folder else stored.folder.name)
    assert open_run(named, Path("results")).folder.samefile(stored.folder)


def test_pairs_and_carry_over_are_tables(run: Run) -> None:
    titles = [section.title for section in formats.load_report(run).sections]
    assert "Every pair, mixed · one · embedded" in titles
    assert "What a client leaves to the slice after its own" in titles


def test_narrowing_and_carry_over_are_plotted(run: Run) -> None:
    made = {plot.name: plot for plot in plots(formats.load_report(run), 680).every()}
    for server in SERVERS:
        narrowing = made[f"narrowing-mixed-one-{server}"]
        assert narrowing.table.titles == ["client", "after 4", "after 5", "after 6"]
        (row,) = narrowing.table.rows
        assert row[0] == "slow"
        assert all(cell.startswith("0.66") or cell.startswith("0.67") for cell in row[1:])
        (row,) = made[f"rounds-mixed-one-{server}"].table.rows
        assert row[0] == "slow"
        assert [round(float(end), 1) for end in row[2].split(" and ")] == [0.7, 0.7]
        carry_over = made[f"carry-over-mixed-one-{server}"]
        assert [row[0] for row in carry_over.table.rows] == [
            f"{client} · {server}" for client in ("slow", "fast", "slow#again")
        ]


def test_nothing_narrows_in_a_run_of_few_sittings(tmp_path: Path) -> None:
    made = plots(load_report(run_of(tmp_path, 4)), 680).every()
    assert not [plot.name for plot in made if plot.name.startswith("narrowing")]


@pytest.mark.parametrize(
    "form", [f for f in format_names() if f not in (*PLOT_SUFFIXES, "picture")]
)
def test_every_form_can_show_it(run: Run, form: str) -> None:
    files = render_files(form, run, 100)
    assert files
    assert all(files.values()) or form in ("hlog", "emcache", "quickcached", "ruby-bench")


def test_pictures_can_show_it(run: Run) -> None:
    assert draw_summary(run).startswith(b"\x89PNG")
    assert draw_plots("svg", run)


def test_one_sitting_is_no_answer(tmp_path: Path, run: Run) -> None:
    few = kept(tmp_path / "few", run.header, outcomes(1))
    text = " ".join(render("answers", few, 200).split())
    assert "That is no answer yet" in text
