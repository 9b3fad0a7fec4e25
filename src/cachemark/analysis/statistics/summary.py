"""The summary of the trials of each cell."""

from collections.abc import Sequence
from itertools import compress

import msgspec

from cachemark.analysis.percentiles import PERCENTILES, min_sample_size
from cachemark.analysis.statistics.censored_times import CensoredTimes
from cachemark.analysis.statistics.figures import FIGURES, is_withheld, kind_rate
from cachemark.analysis.statistics.interval import Interval, absolute_figure
from cachemark.analysis.statistics.over_trials import over_trials, percentile_over_trials
from cachemark.analysis.statistics.pooled_times import TrialTimes
from cachemark.analysis.statistics.within_trial import WithinTrial, within
from cachemark.analysis.verdict.stationarity import STATIONARITY_RULES
from cachemark.analysis.verdict.tape_repeats import hits_withheld
from cachemark.model.histogram import Histogram
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.protocol import Done, Operation
from cachemark.model.server_stats import ServerStats

# Even steps on the axis 1 / (1 − q): ten for each further nine of the percentile.
_STEPS = 10
_FURTHEST = 8 * _STEPS


class PercentilePoint(msgspec.Struct, frozen=True, kw_only=True):
    """A percentile, and the time in ns within which that part of the operations was done."""

    percent: float
    ns: int


class TimeSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Percentiles of the merged histograms in ns; None if there are too few operations for one.

    A percentile that reaches lower bounds is one itself, in `at_least`. `withheld`: percentiles
    that the verdict withholds in every trial; where it does so in some trials, the percentile is
    that of the others. `intervals` has the percentiles with their interval or range over trials.
    `curve` is for plots; only the response times of all kinds together have one.
    """

    count: int
    percentiles: dict[float, int | None]
    max_ns: int
    intervals: dict[float, Interval] = {}
    at_least: dict[float, int] = {}
    withheld: list[float] = []
    curve: list[PercentilePoint] = []

    @property
    def too_few(self) -> list[float]:
        """The percentiles for which there are too few operations."""
        told = (*self.at_least, *self.withheld)
        return [each for each, ns in self.percentiles.items() if ns is None and each not in told]


class KindSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of operation in a cell's valid trials; `kind` is empty for all kinds together.

    `ok` are the successful operations. `not_stored` are operations that the server refused in an
    answer, such as a `cas` after another caller's write. `hits` and `misses` are None where a
    repeated tape has shaped them; the report says why.
    """

    kind: str
    ok: int
    rate: Interval
    hits: int | None
    misses: int | None
    not_stored: int = 0
    errors: dict[str, int]
    response: TimeSummary | None
    service: TimeSummary | None


class CellSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A cell: the figures of its valid trials, and the reasons why others are not valid.

    `groups`: whole repetitions of the workload's sequence, if every trial has their times.
    `within`: intervals within the trial, if only one is valid. `evictions` is by the servers' own
    counters, over all valid trials; None if a server does not report them. `renewed`: connections
    that the client closed as it was asked to and opened again, over all valid trials.
    """

    cell: Cell
    trials: int
    valid: int
    library: str
    library_version: str
    runtime: str
    server_version: str
    total: KindSummary | None
    kinds: Sequence[KindSummary] = ()
    groups: KindSummary | None = None
    client_cpu_us: Interval | None = None
    server_cpu_us: Interval | None = None
    server_rss_bytes: Interval | None = None
    evictions: int | None = None
    renewed: int = 0
    within: WithinTrial | None = None
    rejected: dict[str, int] = {}
    notes: Sequence[str] = ()
    unsupported: str
    remedy: str

    @property
    def parts(self) -> Sequence[KindSummary]:
        """The kinds of operation, then the groups."""
        return [*self.kinds, self.groups] if self.groups else self.kinds


def summarise(outcomes: Sequence[Outcome], *, brief: bool = False) -> list[CellSummary]:
    """Summaries of all cells, in the order of their first appearance.

    With `brief`, the figures of a cell are only its rate and, in an open loop, its p99.
    """
    return [_summary(trials, brief) for trials in trials_of_cells(outcomes).values()]


def trials_of_cells(outcomes: Sequence[Outcome]) -> dict[Cell, list[Outcome]]:
    """The trials of each cell, in the order of play; cells in that of their first trial."""
    cells: dict[Cell, list[Outcome]] = {}
    for outcome in sorted(outcomes, key=lambda outcome: outcome.trial.index):
        cells.setdefault(outcome.trial.cell, []).append(outcome)
    return cells


def _summary(trials: list[Outcome], brief: bool) -> CellSummary:
    valid = [t for t in trials if t.state == "measured" and t.verdict == "VALID" and t.measure]
    unsupported = next((t for t in trials if t.state == "unsupported"), None)
    ready = next((t.worker for t in trials if t.worker), None)
    server = next((t.server for t in trials if t.server), None)
    kinds = sorted({kind for trial in valid for kind in _operations(trial)})
    ranking = () if trials[0].load.schedule == "closed" else (99.0,)
    summary = CellSummary(
        cell=trials[0].trial.cell,
        trials=len(trials),
        valid=len(valid),
        library=ready.library if ready else "",
        library_version=ready.library_version if ready else "",
        runtime=ready.runtime if ready else "",
        server_version=server.version if server else "",
        total=_kind("", valid, kinds, ranking if brief else PERCENTILES) if valid else None,
        unsupported=unsupported.reason if unsupported else "",
        remedy=unsupported.remedy if unsupported else "",
    )
    return summary if brief else _with_details(summary, trials, valid, kinds)


def _with_details(
    summary: CellSummary, trials: list[Outcome], valid: list[Outcome], kinds: list[str]
) -> CellSummary:
    return msgspec.structs.replace(
        summary,
        kinds=[_kind(kind, valid, [kind]) for kind in kinds],
        groups=_groups(valid, kinds),
        client_cpu_us=over_trials(valid, FIGURES["client-cpu"]),
        server_cpu_us=over_trials(valid, FIGURES["server-cpu"]),
        server_rss_bytes=over_trials(valid, FIGURES["server-rss"]),
        evictions=evictions(valid),
        renewed=sum(trial.measure.renewed for trial in valid if trial.measure),
        within=within(valid[0], PERCENTILES) if len(valid) == 1 else None,
        rejected=_rejected(trials),
        notes=list(dict.fromkeys(note for trial in trials for note in _notes(trial))),
    )


def _kind(
    name: str, valid: list[Outcome], kinds: list[str], percents: Sequence[float] = PERCENTILES
) -> KindSummary:
    parts = [_of_kinds(trial, kinds) for trial in valid]
    operations = [operation for part in parts for operation in part]
    errors: dict[str, int] = {}
    for operation in operations:
        for kind, count in operation.errors.items():
            errors[kind] = errors.get(kind, 0) + count
    shown, whole = not any(map(hits_withheld, valid)), percents is PERCENTILES
    return KindSummary(
        kind=name,
        ok=sum(operation.succeeded for operation in operations),
        rate=_rate(valid, kinds),
        hits=sum(operation.found for operation in operations) if shown else None,
        misses=sum(operation.misses for operation in operations) if shown else None,
        not_stored=sum(operation.not_stored for operation in operations),
        errors=errors,
        response=_response(name, valid, kinds, percents) if percents else None,
        service=_times(CensoredTimes(operations, service=True)) if whole else None,
    )


def _groups(valid: list[Outcome], kinds: list[str]) -> KindSummary | None:
    windows = [trial.measure for trial in valid if trial.measure]
    length = group_length(windows)
    if not length:
        return None
    operations = [operation for window in windows for operation in group_operations(window)]
    times = _times(CensoredTimes(operations))
    return KindSummary(
        kind=f"group of {length}",
        ok=sum(operation.ok for operation in operations),
        rate=group_rate(_rate(valid, kinds), length),
        hits=None,
        misses=None,
        errors={},
        response=times,
        service=times,
    )


def evictions(valid: Sequence[Outcome]) -> int | None:
    """Evicted items by the servers' own counters; None if a server does not report them."""
    counts = [
        ServerStats(trial.stats_after).delta(ServerStats(trial.stats_before), "evictions")
        for trial in valid
    ]
    return sum_if_known(counts)


def sum_if_known(counts: Sequence[int | None]) -> int | None:
    """The sum of counts; None without any, or if one of them is not known."""
    return None if not counts or None in counts else sum(filter(None, counts))


def _operations(trial: Outcome) -> dict[str, Operation]:
    return trial.measure.operations if trial.measure else {}


def _of_kinds(trial: Outcome, kinds: list[str]) -> list[Operation]:
    return [operation for kind, operation in _operations(trial).items() if kind in kinds]


def _rate(valid: list[Outcome], kinds: list[str]) -> Interval:
    """Geometric mean over trials. If one did no operation: their mean, without an interval.

    To leave such a trial out would make a client that sometimes fails look faster.
    """
    rates = [kind_rate(trial, kinds) or 0.0 for trial in valid]
    return absolute_figure(rates) if all(rates) else Interval(value=sum(rates) / len(rates))


def _times(times: CensoredTimes) -> TimeSummary | None:
    merged = times.merged
    if merged is None:
        return None
    quantiles = {percent: times.percentile(percent) for percent in PERCENTILES}
    known = {percent: of for percent, of in quantiles.items() if of is not None}
    exact = {percent: of.ns for percent, of in known.items() if of.exact}
    return TimeSummary(
        count=merged.count,
        percentiles={percent: exact.get(percent) for percent in PERCENTILES},
        max_ns=merged.max(),
        at_least={percent: of.ns for percent, of in known.items() if not of.exact},
    )


def _response(
    name: str, valid: list[Outcome], kinds: list[str], percents: Sequence[float]
) -> TimeSummary | None:
    """The response times; each percentile is of the trials that do not withhold it.

    Only `percents` have intervals.
    """
    times = CensoredTimes([op for trial in valid for op in _of_kinds(trial, kinds)])
    whole = _times(times)
    if whole is None or times.merged is None:
        return None
    percentiles, at_least = dict(whole.percentiles), dict(whole.at_least)
    withheld: list[float] = []
    intervals: dict[float, Interval] = {}
    own = [TrialTimes(_of_kinds(trial, kinds)) for trial in valid]
    for percent in PERCENTILES:
        shows = [not is_withheld(trial, percent, name) for trial in valid]
        if not all(shows):
            shown = list(compress(valid, shows))
            part = CensoredTimes([op for trial in shown for op in _of_kinds(trial, kinds)])
            quantile = part.percentile(percent)
            percentiles[percent] = quantile.ns if quantile and quantile.exact else None
            at_least.pop(percent, None)
            if quantile and not quantile.exact:
                at_least[percent] = quantile.ns
            withheld += [] if shown else [percent]
        if percent in percents and percentiles[percent] is not None:
            interval = percentile_over_trials(tuple(compress(own, shows)), percent)
            intervals |= {percent: interval} if interval else {}
    return msgspec.structs.replace(
        whole,
        percentiles=percentiles,
        intervals=intervals,
        at_least=at_least,
        withheld=withheld,
        curve=[] if name or percents is not PERCENTILES else _curve(times, times.merged, valid),
    )


def _curve(times: CensoredTimes, merged: Histogram, valid: list[Outcome]) -> list[PercentilePoint]:
    """The percentiles whose own 95 % interval is finite with this number of operations.

    Up to the first percentile that is a lower bound or that some trial withholds.
    """
    withheld = [each.percent for trial in valid for each in trial.withheld if not each.kind]
    points: list[PercentilePoint] = []
    for step in range(1, _FURTHEST + 1):
        percent = 100 * (1 - 10 ** (-step / _STEPS))
        if percent >= min(withheld, default=100.0):
            break
        enough = merged.count >= min_sample_size(max(percent, 100 - percent))
        if enough and (of := times.estimate(merged, percent)).exact:
            points.append(PercentilePoint(percent=percent, ns=of.ns))
    return points


def _rejected(trials: list[Outcome]) -> dict[str, int]:
    reasons: dict[str, int] = {}
    for trial in trials:
        for text in rejections(trial):
            reasons[text] = reasons.get(text, 0) + 1
    return reasons


def rejections(trial: Outcome) -> list[str]:
    """The reasons why a trial is not valid; empty if it is, or if it was not played."""
    if trial.state == "failed":
        return [f"failed: {trial.reason}"]
    if trial.state == "measured" and trial.verdict != "VALID":
        return [f"{trial.verdict}: {reason}" for reason in trial.reasons]
    return []


def _notes(trial: Outcome) -> list[str]:
    """A trial's notes, without those on its stationarity, which the report counts instead."""
    counted = {found.text for found in trial.findings if found.rule in STATIONARITY_RULES}
    return [note for note in trial.notes if note not in counted]


def group_length(windows: Sequence[Done]) -> int:
    """The number of operations in a group; 0 unless all windows have groups."""
    lengths = {window.groups.length if window.groups else 0 for window in windows}
    return lengths.pop() if len(lengths) == 1 else 0


def group_operations(window: Done) -> list[Operation]:
    """A window's groups as operations. In a closed loop, response and service time are the same."""
    groups = window.groups
    if groups is None:
        return []
    return [Operation(attempts=groups.ok, ok=groups.ok, response=groups.time, service=groups.time)]


def group_rate(operations: Interval, length: int) -> Interval:
    """Groups per second, from all operations per second: cut groups are part of the rate too."""
    ends = (operations.low, operations.high)
    low, high = (None if end is None else end / length for end in ends)
    return msgspec.structs.replace(operations, value=operations.value / length, low=low, high=high)
