"""The forms of a comparison: golden files, and what a program reads."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cachemark.report.compare import (
    RENDERERS,
    CellFilter,
    ComparisonReport,
    Side,
    compare_runs,
    compare_within_run,
)
from cachemark.report.compare.tables import document
from tests.builders.outcomes import numbered
from tests.builders.stored_runs import in_turns, made_header, other_host, trials
from tests.golden import assert_golden

GOLDEN = Path(__file__).parent / "golden"


def two_runs() -> ComparisonReport:
    """One run on each side: no answers; lost and other work, on another kernel."""
    before = [*trials("a", 2000), *trials("b", 2000), *trials("c", 500), *trials("d", 50)]
    after = [*trials("a", 1000), *trials("b", 4000), *trials("c", 10)]
    old = Side(headers=[made_header("old")], outcomes=[numbered(before)])
    header = made_header("new", 2, host=other_host(kernel="7.0"))
    new = Side(headers=[header], outcomes=[numbered(after)])
    return compare_runs(old, new, CellFilter(), (), 2.0)


def many_runs() -> ComparisonReport:
    """Four runs on each side: in turns: better, worse and equal."""
    rates = {"a": (2000, 1000), "b": (2000, 4000), "c": (2000, 2000)}
    old, new = (
        Side(
            headers=[
                made_header(f"{name}-{number}", in_turns(number, second=side == 1))
                for number in range(4)
            ],
            outcomes=[
                numbered(
                    [t for client, of in rates.items() for t in trials(client, of[side] + number)]
                )
                for number in range(4)
            ],
        )
        for side, name in enumerate(("old", "new"))
    )
    return compare_runs(old, new, CellFilter(), (), 2.0)


def one_run() -> ComparisonReport:
    outcomes = [*trials("a", 2000), *trials("b", 1800), *trials("c", 2000)]
    wanted = CellFilter(client=("a", "b", "c"))
    return compare_within_run(
        made_header("run"), numbered(outcomes), wanted, ("rate", "client-cpu"), 2.0
    )


@pytest.mark.parametrize("form", RENDERERS)
@pytest.mark.parametrize("made", [two_runs, many_runs, one_run])
def test_a_form_is_as_it_was(form: str, made: Callable[[], ComparisonReport]) -> None:
    assert_golden(form, RENDERERS[form](made(), 120), GOLDEN / f"{made.__name__}.{form}")


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    for made, answer in ((two_runs(), "no answer"), (many_runs(), "worse"), (one_run(), "worse")):
        lines = RENDERERS["table"](made, width).splitlines()
        assert max(map(len, lines)) <= width
        assert any(answer in line for line in lines)


def test_csv_and_json_say_the_same() -> None:
    made = two_runs()
    rows = list(csv.DictReader(io.StringIO(RENDERERS["csv"](made, None))))
    document = json.loads(RENDERERS["json"](made, None))
    comparisons = [comparison for row in document["rows"] for comparison in row["comparisons"]]
    assert document["regressed"] is True
    assert [row["figure"] for row in rows] == [comparison["figure"] for comparison in comparisons]
    for row, comparison in zip(rows, comparisons, strict=True):
        if comparison["ratio"] is None:
            assert (row["ratio"], row["answer"]) == ("", "")
            assert row["reason"] == comparison["why"]
        else:
            assert float(row["ratio"]) == pytest.approx(comparison["ratio"]["value"], rel=1e-5)
            assert row["answer"] == comparison["answer"]


def test_tables_have_the_best_cell_first() -> None:
    for figure, cells in (("ops/s", ["b", "c", "a"]), ("p99", ["b", "c", "a"])):
        (table,) = [of.table for of in document(many_runs()).parts if of.title == figure]
        assert table is not None
        assert [row[0] for row in table.rows] == cells
