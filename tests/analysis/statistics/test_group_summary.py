"""Groups in summaries: whole repetitions of a sequence, beside the kinds of operation."""

import pytest

from cachemark.analysis.statistics import CellSummary, summarise
from tests.builders.exported_run import outcomes


def summary_of(client: str) -> CellSummary:
    """The summary of a client's cell with one caller."""
    found = {(each.cell.client, each.cell.load): each for each in summarise(outcomes())}
    return found[client, "one"]


def test_groups_of_all_trials_are_counted_and_timed() -> None:
    summary = summary_of("python/fast")
    groups, total = summary.groups, summary.total
    assert groups is not None
    assert total is not None
    assert (groups.kind, groups.ok) == ("group of 3", 3 * 190)
    assert groups.rate.value == pytest.approx(total.rate.value / 3)
    assert groups.response is not None
    assert groups.response.count == 3 * 190
    assert [part.kind for part in summary.parts] == ["get", "set", "group of 3"]


def test_a_client_that_times_no_groups_has_none() -> None:
    summary = summary_of("python/mute")
    assert summary.groups is None
    assert [part.kind for part in summary.parts] == ["get", "set"]
