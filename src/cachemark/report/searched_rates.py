"""Results of searches: the highest rate that meets the objective, in sentences and tables."""

from collections.abc import Mapping, Sequence

import msgspec

from cachemark.analysis.number_format import number, time
from cachemark.analysis.rate_search import (
    Bounds,
    Cause,
    Play,
    Search,
    bounds,
    decisive_play,
    rate_interval,
)
from cachemark.analysis.statistics import Interval
from cachemark.model.outcome import Cell
from cachemark.model.search_steps import Objective
from cachemark.report.model import RatePoint, RatesSection, Section

STEPS_TITLE = "Every step of the search"
LIMITED = "limited by this generator, not by the server"
_MAY_DO_MORE = (
    " More callers (--threads), more CPUs for the workers (--set placement.worker=…) or another "
    "host for them (--hosts) may do more."
)
_NOTHING_LEFT = (
    " No number of threads is left to try: more CPUs for the workers (--set placement.worker=…) or "
    "another host for them (--hosts) may do more."
)
# Why a trial is no answer about the server. The reason follows, where one is needed.
_SPOILED: dict[Cause, str] = {
    "generator": LIMITED,
    "noise": "not judged, the machine was disturbed",
    "invalid": "not judged, INVALID",
    "failed": "not judged, failed",
    "unsupported": "not supported",
    "few": "not judged, too few operations",
}
# Another trial may be without these.
_BY_CHANCE: tuple[Cause, ...] = ("noise", "invalid", "failed")


class FoundRate(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a cell's searches: one for each block.

    `typical` is the search with the median of the best rates, and `ends` are its bounds.
    `more_threads`: the threads with which others went on, as the client was too slow; 0 if none.
    """

    cell: Cell
    searches: list[Search]
    typical: Search
    ends: Bounds
    more_threads: int = 0

    @property
    def interval(self) -> Interval | None:
        """The interval of the best rate, by all trials of all searches; None if it is not known."""
        return rate_interval(self.searches, self.ends.best)

    @property
    def at_best(self) -> Play | None:
        """The last trial at the best rate; None where no rate was found."""
        plays = [play for play in self.typical.plays if play.rate == self.ends.best]
        return plays[-1] if plays else None

    @property
    def rates(self) -> list[float]:
        """The best rate of each search, in ascending order."""
        return sorted(bounds(search, final=True).best for search in self.searches)


def found_rates(searches: Sequence[Search]) -> list[FoundRate]:
    """One for each cell. Within the same work, the highest rate comes first."""
    by_cell: dict[Cell, list[Search]] = {}
    for search in searches:
        if not all(play.spoiled_by == "unsupported" for play in [*search.closed, *search.plays]):
            by_cell.setdefault(search.cell, []).append(search)
    more = {one.after: one.threads for one in searches if one.cell in by_cell}
    rates = [_found(cell, members, more.get(cell, 0)) for cell, members in by_cell.items()]
    works = list(dict.fromkeys((one.cell.workload, one.cell.load) for one in rates))
    return sorted(
        rates, key=lambda one: (works.index((one.cell.workload, one.cell.load)), -one.ends.best)
    )


def _found(cell: Cell, members: list[Search], more_threads: int) -> FoundRate:
    ranked = sorted(members, key=lambda search: bounds(search, final=True).best)
    typical = ranked[(len(ranked) - 1) // 2]
    return FoundRate(
        cell=cell,
        searches=members,
        typical=typical,
        ends=bounds(typical, final=True),
        more_threads=more_threads,
    )


def sentence(found_rate: FoundRate, text: str, objective: Objective) -> str:
    """The answer for one cell; `text` is the objective as it was written."""
    cell, ends = found_rate.cell, found_rate.ends
    place = f"{cell.workload}, {cell.load}, against {cell.server}: {cell.client}"
    if not found_rate.typical.most:
        return f"{place}: nothing was found, as {why_no_rate(found_rate)}."
    why = rate_above(found_rate, objective)
    remedy = _NOTHING_LEFT if found_rate.typical.after else _MAY_DO_MORE
    more = remedy if why.endswith(LIMITED) else ""
    if not ends.best:
        return f"{place}: {_none_found(found_rate, text)}; {why}.{more}"
    at_best = time(found_rate.at_best.percentile_ns if found_rate.at_best else None)
    head = f"{place} meets {text} up to {_rate(found_rate)} operations per second"
    return f"{head} ({objective.percentile} {at_best}); {why}.{more}"


def is_open(found_rate: FoundRate) -> bool:
    """Whether more searches may find what these have not: disturbed trials, or few, decided.

    They do not help where the client is too slow, its windows are too short for the percentile, or
    all rates met the objective.
    """
    typical = found_rate.typical
    if not typical.most:
        return typical.closed[-1].spoiled_by in _BY_CHANCE
    above = decisive_play(typical, found_rate.ends.above)
    if above is None or above.spoiled_by:
        return above is not None and above.spoiled_by in _BY_CHANCE
    return found_rate.ends.best > 0 and found_rate.interval is None


def why_no_rate(found_rate: FoundRate) -> str:
    """Why a search tried no rate: its closed loop could not be measured."""
    return f"its closed loop was {_spoiled(found_rate.typical.closed[-1])}"


def _none_found(found_rate: FoundRate, text: str) -> str:
    """A sentence if no rate was found: the objective was missed, or no trial could decide."""
    told = any(play.misses_by and not play.spoiled_by for play in found_rate.typical.plays)
    return f"no rate meets {text}" if told else f"no rate was shown to meet {text}"


def _rate(found_rate: FoundRate) -> str:
    """The median of the searches' best rates, with its interval, and the range of all of them."""
    count, known = len(found_rate.rates), found_rate.interval
    parts = [_ends(known)] if known else []
    parts += [f"{_range(found_rate)} in {count} searches"] if count > 1 else []
    value = number(found_rate.ends.best)
    return f"{value} ({'; '.join(parts)})" if parts else value


def _ends(of: Interval | None) -> str:
    if of is None or of.low is None or of.high is None:
        return "–"
    return f"{number(of.low)}–{number(of.high)}"


def _range(found_rate: FoundRate) -> str:
    rates = found_rate.rates
    return f"{number(rates[0])}–{number(rates[-1])}" if len(rates) > 1 else "–"


def rate_above(found_rate: FoundRate, objective: Objective) -> str:
    """Why the next rate that was tried is too high."""
    above, more = decisive_play(found_rate.typical, found_rate.ends.above), found_rate.more_threads
    if above is None:
        most = number(found_rate.typical.most)
        return f"a closed loop of the same callers does {most}, so more callers may do more"
    text = f"at {number(above.rate)}: {play_text(above, objective)}"
    is_limit = above.spoiled_by == "generator"
    return f"{text}; the search went on with {more} threads" if more and is_limit else text


def play_text(play: Play, objective: Objective) -> str:
    """The result of one trial, in words."""
    if play.spoiled_by:
        return _spoiled(play)
    if not play.misses_by:
        return "met"
    if play.misses_by == objective.percentile:
        return f"{objective.percentile} {time(play.percentile_ns)}"
    return play.misses_by


def _spoiled(play: Play) -> str:
    text = _SPOILED[play.spoiled_by]
    # The table of all trials has the percentiles that a late client moved.
    return text if play.spoiled_by == "generator" else f"{text}: {play.why}"


def sections(
    rates: Sequence[FoundRate], text: str, objective: Objective, series: Mapping[str, int]
) -> list[Section]:
    """The table of the answers, and one of all steps. `series`: the number of a client's colour."""
    if not rates:
        return []
    return [_rates(rates, text, objective), _steps(rates, objective, series)]


def _rates(rates: Sequence[FoundRate], text: str, objective: Objective) -> Section:
    shown = _varying(rates)
    return RatesSection(
        title=" · ".join([f"The highest rates with {text}", *_shared(rates)]),
        topic="search",
        columns=["client", *shown, "highest rate", "interval", "range",
                 f"its {objective.percentile}", "next rate", "its result", "closed loop"],
        rows=[_row(one, shown, objective) for one in rates],
        notes=["Rates are offered operations per second. Of several searches, the row has the one "
               "with the median rate; the interval (95 %, each row by itself) is made of all "
               "trials of all searches, and the range is that of their rates. Each search begins "
               "below the rate of a closed loop of the same callers; like what is offered, it has "
               "operations that store nothing, too."],
        prose=True,
    )  # fmt: skip


def _varying(rates: Sequence[FoundRate]) -> list[str]:
    fields = ("server", "workload", "load")
    return [name for name in fields if len({getattr(one.cell, name) for one in rates}) > 1]


def _shared(rates: Sequence[FoundRate]) -> list[str]:
    varying = _varying(rates)
    fields = ("workload", "load", "server")
    return [getattr(rates[0].cell, name) for name in fields if name not in varying]


def _row(found_rate: FoundRate, shown: Sequence[str], objective: Objective) -> list[str]:
    names, ends = _names(found_rate.cell, shown), found_rate.ends
    tried = decisive_play(found_rate.typical, ends.above)
    found = [number(ends.best), _ends(found_rate.interval), _range(found_rate)]
    best = found if ends.best else ["–", "–", "–"]
    at_best = time(found_rate.at_best.percentile_ns) if found_rate.at_best else "–"
    result = play_text(tried, objective).partition(":")[0] if tried else "–"
    above = number(ends.above) if tried else "–"
    most = number(found_rate.typical.most) if found_rate.typical.most else "–"
    return [*names, *best, at_best, above, result, most]


def _steps(rates: Sequence[FoundRate], objective: Objective, series: Mapping[str, int]) -> Section:
    shown = _varying(rates)
    return Section(
        title=STEPS_TITLE,
        topic="search",
        columns=["client", *shown, "block", "rate", "done", objective.percentile, "result"],
        rows=[
            [*_names(one.cell, shown), str(search.block + 1), *_step(play, objective)]
            for one in rates
            for search in one.searches
            for play in sorted(search.plays, key=lambda play: play.rate)
        ],
        notes=[],
        unit=objective.percentile,
        rate_points=[
            RatePoint(
                label=" · ".join(_names(one.cell, shown)),
                rate=play.rate,
                percentile_ns=play.percentile_ns,
                series=series.get(one.cell.client) if not shown else None,
            )
            for one in rates
            for search in one.searches
            for play in search.plays
            if play.percentile_ns and not play.spoiled_by
        ],
        prose=True,
    )


def _names(cell: Cell, shown: Sequence[str]) -> list[str]:
    return [cell.client, *(getattr(cell, name) for name in shown)]


def _step(play: Play, objective: Objective) -> list[str]:
    figures = [number(play.rate), number(play.ops_per_s), time(play.percentile_ns)]
    return [*figures, play_text(play, objective)]
