"""Cells with different names: of two runs, or of one."""

from typing import Any

import msgspec
import pytest

from cachemark.model.errors import UsageError
from cachemark.model.experiment import Keys
from cachemark.model.outcome import Outcome
from cachemark.model.plan import NO_SERVER
from cachemark.report.compare import ComparisonReport, Side, compare_cells
from tests.builders.outcomes import WORKLOAD, numbered
from tests.builders.stored_runs import all_at, made_header, other_host, trials
from tests.report.compare.test_two_runs import answers, four_runs, invalid


def side(name: str, *found: list[Outcome], **changes: Any) -> Side:
    """One run of some cells."""
    outcomes = numbered([trial for cell in found for trial in cell])
    return Side(headers=[made_header(name, **changes)], outcomes=[outcomes])


def compared(first: Side, second: Side | None, *texts: str) -> ComparisonReport:
    return compare_cells(first, second, (texts[0], texts[1]), ("rate",), 2.0)


def ratio(of: ComparisonReport) -> float:
    (row,) = of.rows
    assert row.comparisons[0].ratio
    return row.comparisons[0].ratio.value


OLD = side("old", trials("a", 2000), all_at(trials("a", 4000), server="fast"))
NEW = side("new", trials("b", 1000), all_at(trials("c", 1000), workload="mine", load="other"))


def test_one_client_is_compared_with_another_at_their_shared_server() -> None:
    found = compared(OLD, NEW, "a", "b")
    assert ratio(found) == pytest.approx(0.5, rel=0.02)
    assert (found.baseline, found.other, found.paired) == ("a of old", "b of new", False)
    assert not found.rows[0].comparisons[0].tested
    # The cell without a counterpart is named.
    assert found.left_out == ["b · fast · mixed · one: no valid trial in new: not played"]


def test_titles_compare_any_two_cells_of_the_same_work() -> None:
    found = compared(OLD, NEW, "a · fast · mixed · one", "b · embedded · mixed · one")
    assert ratio(found) == pytest.approx(0.25, rel=0.02)
    assert found.left_out == []
    # Names do not change the work.
    found = compared(OLD, NEW, "a · embedded · mixed · one", "c · embedded · mine · other")
    assert ratio(found) == pytest.approx(0.5, rel=0.02)


def test_several_runs_on_each_side_have_an_answer() -> None:
    before, after = four_runs("old", ("a", 2000)), four_runs("new", ("b", 1000))
    found = compared(before, after, "a", "b")
    assert answers(found) == {"b": "worse"}
    assert found.regressed


def test_other_work_is_refused() -> None:
    workload = msgspec.structs.replace(WORKLOAD, keys=Keys(count=7))
    other = side("new", trials("b", 1000, workload=workload))
    with pytest.raises(UsageError, match="no cell to compare") as raised:
        compared(OLD, other, "a", "b")
    assert "the work differs: workload.keys.count: default → 7" in raised.value.remedy


def test_a_cell_without_a_valid_trial_is_lost() -> None:
    found = compared(OLD, side("new", invalid(trials("b", 1000))), "a · embedded", "b")
    assert found.lost == ["b · embedded · mixed · one: it lied"]
    assert found.regressed


def test_what_differs_besides_is_told_of_both() -> None:
    after = trials("b", 2000)
    assert after[0].worker
    worker = msgspec.structs.replace(after[0].worker, library_version="2.0")
    newer = [msgspec.structs.replace(trial, worker=worker) for trial in after]
    found = compared(OLD, side("new", newer, host=other_host(name="elsewhere")), "a", "b")
    assert "version of a → b: 1.0 → 2.0" in found.differences
    assert "the machines differ, and each ratio includes this difference" in found.notes


@pytest.mark.parametrize(
    ("texts", "text", "remedy"),
    [
        (("a", "bb"), "bb: not in new", "did you mean 'b'?"),
        (("zz", "b"), "zz: not in old", "a · embedded · mixed · one"),
        (("a · c", "b"), "c: not in old", ""),
        (("", "b"), "'': not the name of a cell", "old has a · embedded"),
        (("a · a", "b"), "a · a: old has no such cell", "it has"),
        (("a · one · fast · mixed · a", "b"), "old has no such cell", "it has"),
        (("a · fast", "b"), "have no other names in common", "name both by their titles"),
    ],
)
def test_what_names_no_cell_is_refused(texts: tuple[str, str], text: str, remedy: str) -> None:
    with pytest.raises(UsageError) as raised:
        compared(OLD, NEW, *texts)
    assert text in raised.value.text
    assert remedy in raised.value.remedy


def test_an_ambiguous_name_is_read_as_on_the_other_side() -> None:
    both = side(
        "both", all_at(trials("null", 3000), server="null"), all_at(trials("a", 2000), server="b")
    )
    one = side("one", all_at(trials("null", 1000), server="memcached"))
    # As clients they have different servers, so it is the server.
    found = compared(both, one, "null", "memcached")
    assert found.rows[0].other.client == "null"
    assert ratio(found) == pytest.approx(1 / 3, rel=0.02)


def test_cells_of_one_run_are_paired_by_block() -> None:
    run = side("run", trials("a", 2000), trials("b", 1800), all_at(trials("b", 500), server="fast"))
    found = compared(run, None, "a", "b · embedded · mixed · one")
    assert found.paired
    assert answers(found) == {"b": "worse"}
    with pytest.raises(UsageError, match="differ in their client and server"):
        compared(run, None, "a · embedded", "b · fast")
    with pytest.raises(UsageError, match="a · embedded · mixed · one: cannot be compared with its"):
        compared(run, None, "a", "a")


def test_an_in_process_cache_meets_another_runs_client() -> None:
    cache = side("cache", all_at(trials("cache", 9000), server=NO_SERVER))
    found = compared(cache, NEW, "cache", "b")
    assert found.rows[0].other.server == "embedded"
