"""Histories: which cells, which runs of them, and what each is compared with."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cachemark.cli.play import write_report
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Keys
from cachemark.model.outcome import Outcome
from cachemark.model.plan import trial_count
from cachemark.report.history import RENDERERS, History, HistoryQuery, RunIndex, query_history
from cachemark.runs.resilience.stored import RunFolder
from tests.builders.outcomes import WORKLOAD
from tests.builders.stored_runs import kept, made_header, other_host, trials
from tests.golden import assert_golden

GOLDEN = Path(__file__).parent / "golden"


def ask(root: Path, *names: str, **asked: Any) -> History:
    with RunIndex(RunFolder(root)) as index:
        return query_history(index, HistoryQuery(names=names, **asked))


def newer(found: list[Outcome], version: str) -> list[Outcome]:
    """The trials with another version of the library."""
    assert found[0].worker
    worker = msgspec.structs.replace(found[0].worker, library_version=version)
    return [msgspec.structs.replace(trial, worker=worker) for trial in found]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Three runs of a and b; the second is slower, the third on another machine, faster."""
    kept(tmp_path, made_header("run-1", 1), [*trials("a", 2000), *trials("x/b?c=1", 2000)])
    slow = [*newer(trials("a", 1000), "1.1"), *trials("x/b?c=1", 2000)]
    kept(tmp_path, made_header("run-2", 2, cachemark="0.2.0"), slow)
    far = made_header("run-3", 3, host=other_host(name="far"))
    kept(tmp_path, far, trials("a", 8000))
    back = [*newer(trials("a", 1000), "1.1"), *trials("x/b?c=1", 2000)]
    kept(tmp_path, made_header("run-4", 4), back)
    return tmp_path


def test_evictions_are_a_column_where_any_are_counted(tmp_path: Path) -> None:
    before, after = ({"evictions": str(count)} for count in (5, 12))
    counted = trials("a", 1000, stats_before=before, stats_after=after)
    kept(tmp_path, made_header("run-1", 1), trials("a", 1000))
    kept(tmp_path, made_header("run-2", 2), trials("a", 1000, stats_before=before))
    unknown = ask(tmp_path, "a")
    assert "evictions" not in RENDERERS["markdown"](unknown, None)
    kept(tmp_path, made_header("run-3", 3), counted)
    found = ask(tmp_path, "a")
    assert [entry.evictions for entry in found.lines[0].entries] == [None, None, 35]
    header, _, *rows = RENDERERS["markdown"](found, None).split("# a")[1].strip().splitlines()[2:7]
    place = header.split("|").index(" evictions ")
    assert [row.split("|")[place].strip() for row in rows] == ["–", "–", "35"]
    listed = list(csv.DictReader(io.StringIO(RENDERERS["csv"](found, None))))
    assert {row["evictions"] for row in listed if row["folder"] == "run-3"} == {"35"}


def test_a_client_over_time(store: Path) -> None:
    found = ask(store, "a", figures=("rate",))
    (line,) = found.lines
    assert [entry.folder for entry in line.entries] == ["run-1", "run-2", "run-3", "run-4"]
    assert [entry.library_version for entry in line.entries] == ["1.0", "1.1", "1.0", "1.1"]
    assert [entry.cachemark for entry in line.entries] == ["0.1.0", "0.2.0", "0.1.0", "0.1.0"]
    # The third run is the first of its machine; the fourth is compared with the second.
    ratios = [entry.ratio_to_previous for entry in line.entries]
    assert ratios == [None, pytest.approx(0.5, rel=0.02), None, pytest.approx(1.0)]
    assert any("same machine" in note for note in found.notes)
    rate = line.entries[1].figures["rate"]
    assert rate
    assert 1000 <= rate.value <= 1200


@pytest.mark.parametrize(
    ("name", "clients"),
    [
        ("a", ["a"]),
        ("*", ["a", "x/b?c=1"]),
        ("x/*", ["x/b?c=1"]),
        ("x/b?c=1", ["x/b?c=1"]),
        ("a · embedded · mixed · one", ["a"]),
        ("* · embedded · mixed · *", ["a", "x/b?c=1"]),
    ],
)
def test_a_name_is_a_client_or_a_cell(store: Path, name: str, clients: list[str]) -> None:
    assert [line.cell.client for line in ask(store, name).lines] == clients


def test_filters_narrow_it_down(store: Path) -> None:
    assert [len(line.entries) for line in ask(store, "a", host=("made",)).lines] == [3]
    assert [len(line.entries) for line in ask(store, "a", last=2).lines] == [2]
    assert len(ask(store, server=("emb*",)).lines) == 2
    with pytest.raises(UsageError, match="no such cell"):
        ask(store, "a", server=("memcached",))


@pytest.mark.parametrize("name", ["b", "x/b.c=1", "a · embedded · mixed", "A"])
def test_a_name_that_finds_nothing_is_an_error(store: Path, name: str) -> None:
    with pytest.raises(UsageError, match="no such client or cell"):
        ask(store, "a", name)


def test_without_a_name_there_is_a_list_of_runs(store: Path) -> None:
    (store / "run-0").mkdir()
    (store / "run-0" / "run.json").write_text("[]")
    found = ask(store)
    assert [run.folder for run in found.runs] == ["run-0", "run-1", "run-2", "run-3", "run-4"]
    assert found.runs[0].problem
    assert (found.runs[1].valid, found.runs[1].played, found.runs[1].planned) == (10, 10, 10)
    assert [run.folder for run in ask(store, host=("far",)).runs] == ["run-3"]
    assert [run.folder for run in ask(store, last=1).runs] == ["run-4"]


def test_other_work_of_the_same_name_is_another_line(store: Path) -> None:
    changed = msgspec.structs.replace(WORKLOAD, keys=Keys(count=7))
    kept(store, made_header("run-5", 5), trials("a", 500, workload=changed))
    found = ask(store, "a")
    assert sorted(len(line.entries) for line in found.lines) == [1, 4]
    assert len({line.work for line in found.lines}) == 2
    assert "(work " in RENDERERS["table"](found, 120)


def test_what_did_not_count_is_shown_without_a_figure(store: Path) -> None:
    bad = [
        msgspec.structs.replace(t, verdict="INVALID", reasons=["it lied"]) for t in trials("a", 9)
    ]
    kept(store, made_header("run-5", 5), bad)
    (line,) = ask(store, "a").lines
    last = line.entries[-1]
    assert (last.valid, last.trials, last.reason) == (0, 5, "it lied")
    assert set(last.figures.values()) == {None}
    assert last.ratio_to_previous is None
    assert "it lied" in RENDERERS["table"](ask(store, "a"), 140)


def test_unsupported_trials_are_not_counted_as_played(store: Path) -> None:
    unplayed = [
        msgspec.structs.replace(t, state="unsupported", verdict=None, measure=None, reason="no gem")
        for t in trials("b", 9)
    ]
    kept(store, made_header("run-5", 5), [*trials("a", 2000), *unplayed])
    run = ask(store).runs[-1]
    assert (run.valid, run.played, run.planned) == (5, 5, 10)


def test_a_replay_is_no_trial_more(store: Path) -> None:
    """Of five planned trials the machine spoiled two, and one replay of each is valid."""
    header = made_header("run-5", 5)
    experiment = msgspec.structs.replace(
        header.experiment, clients=["a"], twice="", blocks=5, until_valid=5
    )
    assert trial_count(experiment) == 5
    first = trials("a", 2000)
    spoiled = [msgspec.structs.replace(t, verdict="INVALID", reasons=["noise"]) for t in first[:2]]
    header = msgspec.structs.replace(header, experiment=experiment)
    kept(store, header, [*spoiled, *first[2:], *first[:2]])
    entry = ask(store, "a").lines[0].entries[-1]
    assert (entry.valid, entry.trials, entry.replays) == (5, 5, 2)
    run = ask(store).runs[-1]
    assert (run.valid, run.played, run.replays, run.planned) == (5, 5, 2, 5)
    assert "5/5 (2 replays)" in RENDERERS["markdown"](ask(store, "a"), None)
    assert "| 5 (2 replays) |" in RENDERERS["markdown"](ask(store), None)


@pytest.mark.parametrize("width", [80, 120, 160])
def test_no_line_is_wider_than_the_terminal(store: Path, width: int) -> None:
    for found in (ask(store), ask(store, "*")):
        assert max(map(len, RENDERERS["table"](found, width).splitlines())) <= width


@pytest.mark.parametrize("form", RENDERERS)
@pytest.mark.parametrize("name", ["runs", "cells"])
def test_a_form_is_as_it_was(store: Path, form: str, name: str) -> None:
    found = ask(store) if name == "runs" else ask(store, "*")
    assert_golden(form, RENDERERS[form](found, 120), GOLDEN / f"{name}.{form}")


def test_the_forms_say_the_same(store: Path) -> None:
    found = ask(store, "*")
    entries = [entry for line in found.lines for entry in line.entries]
    rows = list(csv.DictReader(io.StringIO(RENDERERS["csv"](found, None))))
    assert [row["folder"] for row in rows if row["figure"] == "rate"] == [e.folder for e in entries]
    assert [row["ratio"] for row in rows if row["figure"] == "rate"] == [
        f"{entry.ratio_to_previous:.6g}" if entry.ratio_to_previous else "" for entry in entries
    ]
    document = json.loads(RENDERERS["json"](found, None))
    assert [entry["folder"] for line in document["lines"] for entry in line["entries"]] == [
        entry.folder for entry in entries
    ]
    markdown = RENDERERS["markdown"](found, None)
    assert markdown.count("| run-") == len(entries)
    runs = list(csv.DictReader(io.StringIO(RENDERERS["csv"](ask(store), None))))
    assert [run["folder"] for run in runs] == ["run-1", "run-2", "run-3", "run-4"]


def test_a_run_has_name_and_answer_once_reported(store: Path) -> None:
    header = msgspec.structs.replace(made_header("run-5", 5), name="after the upgrade")
    run = kept(store, header, [*trials("a", 2000), *trials("b", 1000)])
    assert [(run.name, run.first) for run in ask(store).runs][-1] == ("after the upgrade", "")
    write_report(run)
    last = ask(store).runs[-1]
    assert last.first == "a"
    assert "a has the highest rate" in last.answer
    text = RENDERERS["markdown"](ask(store), None)
    assert "| run-5 | after the upgrade | 2026-03-05 10:00 | made | a |" in text
    # A trial after it: the answer may be another, until the report is written again.
    with run:
        run.append([trials("a", 2000)[0]])
    assert ask(store).runs[-1].first == ""
