"""The list of runs: what it tells of each, and what each leads to."""

import html
import re
import threading
from pathlib import Path
from unittest.mock import patch

import pytest

from cachemark.model import experiment_file
from cachemark.report.history import index
from cachemark.report.history.index import index_rows
from cachemark.report.stored_run import StoredRun
from tests.web.serving import (
    BROKEN,
    EMPTY,
    FAULTS,
    HOSTILE,
    OTHER,
    RUN,
    Visitor,
    made_store,
    served,
    visitor,
)

__all__ = ["visitor"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("client=c", {OTHER}),
        ("host=elsewhere", {OTHER}),
        ("verdict=INVALID&client=a", {OTHER}),
        ("client=a", {RUN, OTHER, FAULTS}),
        ("text=FIRST", {RUN}),
        ("text=upgrade", {RUN}),
        ("text=has+the+highest+rate", {RUN}),
        ("verdict=hangs", {FAULTS}),
        ("suite=resilience", {FAULTS}),
        ("suite=made&server=embedded&client=b", {RUN, OTHER}),
        ("verdict=unreadable", {BROKEN}),
        ("client=nobody", set[str]()),
        ("client=a&page=99999999999", {RUN, OTHER, FAULTS}),
    ],
)
def test_runs_are_found(visitor: Visitor, query: str, expected: set[str]) -> None:
    text = visitor.get(f"/runs?{query}").text
    found = {name for name in (RUN, OTHER, HOSTILE, FAULTS) if f'href="/runs/{name}"' in text}
    assert found | ({BROKEN} if f"{BROKEN}/run.json" in text else set()) == expected


def test_a_slow_first_look_shows_which_run_is_read(tmp_path: Path) -> None:
    made_store(tmp_path)
    going_on = threading.Event()

    def waiting(run: StoredRun, stamp: str) -> dict[str, list[tuple[object, ...]]]:
        going_on.wait()
        return index_rows(run, stamp)

    with served(tmp_path) as visitor:
        with (
            patch("cachemark.report.history.index.index_rows", waiting),
            patch("cachemark.web.stored.PATIENCE_S", 0.01),
        ):
            for page in ("/runs", "/compare", "/history"):
                answer = visitor.get(page)
                assert answer.status == 503
                assert 'http-equiv="refresh"' in answer.text
            while not re.search("reading run [12] of 6: ", visitor.get("/runs").text):
                pass
            going_on.set()
        text = visitor.get("/runs").text
    assert f'href="/runs/{RUN}"' in text


def test_each_page_reads_the_folders_of_runs_once(visitor: Visitor) -> None:
    with patch("cachemark.report.history.index._refresh", wraps=index._refresh) as refresh:
        for number, page in enumerate(("/runs", "/compare", "/history"), 1):
            assert visitor.get(page).status == 200
            assert refresh.call_count == number


def row_of(visitor: Visitor, run: str) -> str:
    """The row of a run in the list."""
    (row,) = (part for part in visitor.get("/runs").text.split("<tr>") if f'/runs/{run}"' in part)
    return row


def test_the_list_says_what_each_run_found(visitor: Visitor) -> None:
    row = row_of(visitor, RUN)
    assert '<span class="own">before the upgrade</span>' in row
    for label, text in (
        ("workload", "mixed"), ("first", "a"), ("clients", "a, b"), ("servers", "embedded"),
        ("valid trials", "10 of 10"),
    ):  # fmt: skip
        assert re.search(rf'data-label="{label}" ?[^>]*>{text}</td>', row), (label, row)
    assert "a has the highest rate" in row
    # No report was written after its last trial: it may go on.
    assert "no answer yet" in row_of(visitor, OTHER)
    assert "nothing played" in row_of(visitor, EMPTY)
    assert "before the upgrade: Which of the two is faster?" in visitor.get(f"/runs/{RUN}").text
    for path in ("/runs", f"/runs/{EMPTY}", f"/runs/{EMPTY}/report"):
        assert "0 of 0" not in visitor.get(path).text


def test_runs_with_faults_are_in_the_list(visitor: Visitor) -> None:
    row = row_of(visitor, FAULTS)
    for text in (
        "does it freeze",
        "frozen-1s, restarted",
        "1 hangs, 1 safe",
        "2 of 2 cells",
    ):
        assert text in row
    sent_on = visitor.get(f"/runs/{FAULTS}")
    assert sent_on.status == 307
    page = visitor.get(sent_on.headers["location"])
    assert "What clients do when their server fails" in page.text
    assert "script-src" not in page.headers["content-security-policy"]
    assert visitor.get(f"/runs/{FAULTS}/resilience/a.html").status == 200
    for path in (f"/runs/{FAULTS}/resilience/..", f"/runs/{RUN}/resilience/index.html"):
        assert visitor.get(path).status == 404


def test_the_remedy_of_a_comparison_is_a_button(visitor: Visitor) -> None:
    text = visitor.get(f"/compare?baseline={RUN}&first=a&other={OTHER}&second=b").text
    assert "no answer" in text
    (typed,) = re.findall(r'<textarea name="experiment" hidden>\n(.*?)</textarea>', text, re.DOTALL)
    planned = experiment_file.parse(html.unescape(typed), "experiment")
    assert (planned.clients, planned.servers, planned.twice) == (["a", "b"], ["embedded"], "a")
    assert [one.name for one in planned.workloads] == ["mixed"]
    # The same client, at another time: no run can play it against itself.
    text = visitor.get(f"/compare?baseline={RUN}&other={OTHER}").text
    assert "<textarea" not in text
    assert "one run cannot play them against each other" in text
    # Within a run, the clients took turns.
    assert "<textarea" not in visitor.get(f"/compare?baseline={RUN}&first=a&second=b").text


def test_a_comparison_offers_runs_by_their_names(visitor: Visitor) -> None:
    text = visitor.get("/compare").text
    assert f"{RUN} · before the upgrade</option>" in text
    assert f'value="{FAULTS}"' not in text, "a run with faults has no cells to compare"
