"""How a cell's figure was computed, from its operations to its interval, in words."""

from collections.abc import Iterator, Sequence

from cachemark.analysis.number_format import (
    bounds_name,
    count_of,
    interval,
    number,
    rate_with_error,
)
from cachemark.analysis.rounds.answers import Place, Ranking
from cachemark.analysis.rounds.pairs import primary_figure
from cachemark.analysis.statistics import CellSummary, Comparison, ok, summarise
from cachemark.model.outcome import Cell, Outcome
from cachemark.report.cells import cell_title
from cachemark.report.model import Report

_RATIO = "{:.3f}"


def explain_cell(report: Report, outcomes: Sequence[Outcome], cell: Cell) -> list[str]:
    """Lines of text about one cell of a run."""
    own = [outcome for outcome in outcomes if outcome.trial.cell == cell]
    rows = [row.summary for group in report.groups for row in group.rows]
    # The report's table has its rate at the level of the ranking, so its summary comes first.
    summary = next(of for of in [*rows, *summarise(own)] if of.cell == cell)
    return [
        cell_title(cell),
        "",
        "What was played",
        *_played(own, summary),
        "",
        "What came of it",
        *_outcome_lines(own),
        "",
        "The figure",
        *_figure(summary, own),
        "",
        "Beside the others",
        *(_beside(report, cell) or ["  nothing to compare it with"]),
    ]


def _played(own: Sequence[Outcome], summary: CellSummary) -> Iterator[str]:
    library = f"{summary.library} {summary.library_version}".strip()
    where = f", against server version {summary.server_version}" if summary.server_version else ""
    played = f"{library} on {summary.runtime}{where}" if library else "nothing: no worker was ready"
    yield f"  {played}"
    rounds = next((outcome.rounds for outcome in own if outcome.rounds), None)
    remote = summary.cell.server.startswith("remote:")
    if remote:
        yield "  the server ran already, and was not started anew"
    if rounds is None:
        fresh = "a fresh worker" if remote else "a fresh server and a fresh worker"
        yield f"  trials: one after the other, each with {fresh}"
        return
    length_ms, lead_in_ms = rounds.length_us / 1e3, rounds.lead_in_us / 1e3
    yield (
        f"  sittings: a fresh {'worker' if remote else 'server and worker'} each, then slices of "
        f"{length_ms:g} ms in turns with {count_of(len(rounds.arms) - 1, 'other cell')}"
    )
    yield f"  the first {lead_in_ms:g} ms of a slice are played and not counted"


def _outcome_lines(own: Sequence[Outcome]) -> Iterator[str]:
    """One for each trial or sitting. A trial of the same block is a replay."""
    for number_, outcome in enumerate(own):
        again = outcome.trial.block in {one.trial.block for one in own[:number_]}
        name = "sitting" if outcome.rounds else "replay of trial" if again else "trial"
        yield _outcome_line(outcome, f"  {name} {outcome.trial.block + 1}: ")


def _outcome_line(outcome: Outcome, head: str) -> str:
    if outcome.state != "measured" or outcome.measure is None:
        return f"{head}{outcome.state}: {outcome.reason}"
    done, elapsed_ns = ok(outcome.measure), outcome.measure.elapsed_ns
    slices = f" in {len(outcome.rounds.slices.ops)} slices" if outcome.rounds else ""
    per_s = f" = {number(done / elapsed_ns * 1e9)} ops/s" if elapsed_ns else ""
    text = f"{head}{done:,} successful operations in {elapsed_ns / 1e9:.3f} s{slices}{per_s}"
    verdict = f"; {outcome.verdict}"
    if outcome.verdict != "VALID":
        verdict += f", so it does not count: {'; '.join(outcome.reasons)}"
    return text + verdict


def _figure(summary: CellSummary, own: Sequence[Outcome]) -> Iterator[str]:
    if summary.total is None:
        yield f"  none: of {count_of(summary.trials, 'trial')} none is valid"
        return
    rate = summary.total.rate
    kind = "sitting" if any(outcome.rounds for outcome in own) else "trial"
    yield f"  {rate_with_error(rate)} ops/s: the geometric mean of {count_of(summary.valid, kind)}"
    if rate.low is None or rate.high is None:
        yield f"  a single {kind} says nothing about the next one, so there is no interval"
    else:
        yield f"  {number(rate.low)} to {number(rate.high)} is the {bounds_name(rate)}"


def _beside(report: Report, cell: Cell) -> list[str]:
    if report.rounds is not None:
        return [line for ranking in _rankings(report, cell) for line in _of_ranking(ranking, cell)]
    lines: list[str] = []
    for group in report.groups:
        for row in group.rows:
            comparison = row.comparison
            if row.summary.cell == cell and comparison is not None and comparison.ratio:
                ratio = interval(comparison.ratio, _RATIO)
                first = group.name_of(comparison.second)
                lines += [
                    f"  {ratio} × {first}, the first: {comparison.answer}",
                    f"  the mean of ln(this / first) over {count_of(comparison.count, 'block')} "
                    "with a valid trial of both, and Student's t on it",
                ]
    return lines


def _rankings(report: Report, cell: Cell) -> Iterator[Ranking]:
    """The rankings of the figure that decides, in which the cell takes part."""
    schedules = {load.name: load.schedule for load in report.header.experiment.loads}
    wanted = primary_figure(closed=schedules.get(cell.load) == "closed")
    for group in report.rounds.groups if report.rounds else []:
        for ranking in group.rankings:
            if ranking.figure == wanted and any(place.cell == cell for place in ranking.places):
                yield ranking


def _of_ranking(ranking: Ranking, cell: Cell) -> Iterator[str]:
    number_, place = next((n, p) for n, p in enumerate(ranking.places, 1) if p.cell == cell)
    yield f"  place {number_} of {len(ranking.places)} by {ranking.title}"
    for comparison, whom in _comparisons(place):
        if comparison.ratio is None:
            yield f"  no ratio to {whom}: {comparison.why}"
            continue
        level = f"{comparison.confidence:.1%}".replace("%", " %")
        ratio = interval(comparison.ratio, _RATIO)
        yield f"  {ratio} × {whom}: {_answer(comparison)}"
        if comparison.scope == "over":
            yield (
                "  the mean of ln(total of this / total of the other) over "
                f"{count_of(comparison.count, 'sitting')}, with Student's t at {level}"
            )
        else:
            yield (
                f"  from the rounds of {count_of(comparison.count, 'sitting')}: what changes when "
                "processes start anew is not in it"
            )
        if comparison.through_reference:
            yield "  the two never shared a set: through the clients that all sets share"
        if comparison.typical is not None:
            yield f"  in the typical slice: {interval(comparison.typical, _RATIO)} ×"


def _comparisons(place: Place) -> Iterator[tuple[Comparison, str]]:
    for comparison in (place.to_winner, place.to_reference):
        if comparison is not None:
            other = comparison.second if comparison.first == place.cell else comparison.first
            yield comparison, f"{other.client} ({other.server})"


def _answer(comparison: Comparison) -> str:
    if not comparison.tested:
        return "not tested"
    if comparison.scope == "within":
        return "within these sittings only, no answer"
    return comparison.answer
