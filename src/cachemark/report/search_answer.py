"""All that a report has of a search: its sentences, its tables, and its rows."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cachemark.analysis.rate_search import searches
from cachemark.analysis.statistics import CellSummary
from cachemark.model.outcome import Outcome
from cachemark.model.run_header import RunHeader
from cachemark.model.search_steps import parse_objective
from cachemark.report import capacity, search_rows, searched_rates
from cachemark.report.groups import series_of
from cachemark.report.model import SearchRow, Section


class SearchAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a search found, for people (`sentences`, `sections`) and for programs (`rows`)."""

    sentences: list[str]
    sections: list[Section]
    rows: list[SearchRow]


def search_answer(
    header: RunHeader, outcomes: Sequence[Outcome], summaries: Sequence[CellSummary]
) -> SearchAnswer:
    """The answer of a run of searches; `summaries` are those of its outcomes."""
    experiment, text = header.experiment, header.experiment.search
    objective = parse_objective(text, "search")
    played, series = searches(outcomes, experiment), series_of("clients", experiment)
    rates = searched_rates.found_rates(played)
    plan = header.hosts.plan if header.hosts else None
    capacities = capacity.capacities(rates, experiment, plan, series)
    return SearchAnswer(
        sentences=[
            *(capacity.sentence(one, text, objective) for one in capacities),
            *(searched_rates.sentence(one, text, objective) for one in rates),
        ],
        sections=[
            *capacity.sections(capacities, text, objective),
            *searched_rates.sections(rates, text, objective, series),
        ],
        rows=search_rows.rows(played, rates, text, summaries),
    )
