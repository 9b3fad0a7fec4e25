"""All that a report has of a search: its sentences, its tables, and its rows."""

from collections.abc import Iterator, Sequence
from functools import partial

import msgspec

from cachemark.analysis.rate_search import Play, Search, bounds, has_ended, searches
from cachemark.analysis.statistics import CellSummary
from cachemark.model.experiment import Experiment
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.plan import trial_count
from cachemark.model.run_header import RunHeader
from cachemark.model.search_steps import parse_objective
from cachemark.report import capacity, searched_rates
from cachemark.report.groups import series_of
from cachemark.report.model import SEARCH_ROWS_VERSION, Left, SearchRow, Section
from cachemark.report.searched_rates import FoundRate, rate_above, why_no_rate


class SearchAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a search, for people (`sentences`, `sections`) and for programs (`rows`).

    `left` is what would answer more: the rest of its steps, or more searches.
    """

    sentences: list[str]
    left: Left
    sections: list[Section]
    rows: list[SearchRow]


def search_answer(
    header: RunHeader, outcomes: Sequence[Outcome], summaries: Sequence[CellSummary]
) -> SearchAnswer:
    """The answer of a run of searches; `summaries` summarise its outcomes."""
    experiment, text = header.experiment, header.experiment.search
    objective = parse_objective(text, "search")
    played, series = searches(outcomes, experiment), series_of("clients", experiment)
    rates = searched_rates.found_rates(played)
    plan = header.hosts.plan if header.hosts else None
    capacities = capacity.capacities(rates, experiment, plan, series)
    return SearchAnswer(
        left=_left(experiment, played, rates),
        sentences=[
            *(capacity.sentence(one, text, objective) for one in capacities),
            *(searched_rates.sentence(one, text, objective) for one in rates),
        ],
        sections=[
            *capacity.sections(capacities, text, objective),
            *searched_rates.sections(rates, text, objective, series),
        ],
        rows=_rows(played, rates, text, summaries),
    )


def _left(experiment: Experiment, played: Sequence[Search], rates: Sequence[FoundRate]) -> Left:
    # Searches with more threads are not planned.
    planned = [one for one in played if one.after is None]
    if len(planned) < trial_count(experiment) or not all(map(has_ended, played)):
        return "rest"
    return "blocks" if any(map(searched_rates.is_open, rates)) else ""


def _rows(
    searches: Sequence[Search],
    found: Sequence[FoundRate],
    text: str,
    summaries: Sequence[CellSummary],
) -> list[SearchRow]:
    """The rows of each cell: its answer, and then each of its searches with all trials.

    `found` are the answers, in their order; `text` is the objective as it was written; `summaries`
    know the versions. Cells that cannot be searched here come last, with the reason.
    """
    played = {one.cell for one in found}
    refused = [one for one in searches if one.cell not in played]
    return [
        *(row for one in found for row in _found(one, text, _row_of(one.cell, text, summaries))),
        *(
            _trial(play, one.block, _row_of(one.cell, text, summaries))
            for one in refused
            for play in [*one.closed, *one.plays]
        ),
    ]


def _row_of(cell: Cell, text: str, summaries: Sequence[CellSummary]) -> partial[SearchRow]:
    client = next(
        (one for one in summaries if one.cell.client == cell.client and one.library), None
    )
    server = [one.server_version for one in summaries if one.cell.server == cell.server]
    return partial(
        SearchRow,
        schema_version=SEARCH_ROWS_VERSION,
        client=cell.client,
        library=client.library if client else "",
        library_version=client.library_version if client else "",
        server=cell.server,
        server_version=next(filter(None, server), ""),
        workload=cell.workload,
        load=cell.load,
        objective=text,
    )


def _found(found: FoundRate, text: str, row: partial[SearchRow]) -> Iterator[SearchRow]:
    interval, at_best = found.interval if found.ends.best else None, found.at_best
    objective = parse_objective(text, "search")
    searched = bool(found.typical.most)
    yield row(
        row="found",
        rate_per_s=found.ends.best or None,
        rate_per_s_low=interval.low if interval else None,
        rate_per_s_high=interval.high if interval else None,
        ops_per_s=at_best.ops_per_s if at_best else None,
        percentile_ns=at_best.percentile_ns if at_best else None,
        verdict="found" if found.ends.best else "none",
        reason=rate_above(found, objective) if searched else why_no_rate(found),
    )
    for search in found.searches:
        best = bounds(search, final=True).best
        verdict = "found" if best else "none"
        yield row(row="search", block=search.block + 1, rate_per_s=best or None, verdict=verdict)
        for play in [*search.closed, *search.plays]:
            yield _trial(play, search.block, row)


def _trial(play: Play, block: int, row: partial[SearchRow]) -> SearchRow:
    """One trial; a closed loop has no rate that is offered, and cannot miss."""
    judged = play.spoiled_by or ("missed" if play.misses_by else "met" if play.rate else "measured")
    measured = play.spoiled_by not in ("failed", "unsupported", "invalid")
    return row(
        row="rate" if play.rate else "closed-loop",
        block=block + 1,
        rate_per_s=play.rate or None,
        ops_per_s=play.ops_per_s if measured else None,
        percentile_ns=play.percentile_ns if measured else None,
        verdict=judged,
        reason=play.why if play.spoiled_by else play.misses_by,
    )
