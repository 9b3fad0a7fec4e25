"""The figures of one trial: rate, percentiles with enough operations, CPU time and memory."""

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Literal

import msgspec

from cachemark.analysis.percentiles import PERCENTILES
from cachemark.analysis.statistics.censored_times import CensoredTimes
from cachemark.model import histogram
from cachemark.model.outcome import Outcome
from cachemark.model.protocol import Done, Operation
from cachemark.model.rounds import Rounds, Slices
from cachemark.model.work_length import plays_to_an_end

# A closed loop without pauses was stopped if its last reply came before this part of the window.
# In other loads, a caller may have nothing to do at the end.
_WHOLE = 0.9


def rate(operations: Sequence[Operation], elapsed_ns: int) -> float:
    """Successful operations per second. Operations that failed or stored nothing do not count."""
    return sum(operation.succeeded for operation in operations) / elapsed_ns * 1e9


def ok(window: Done) -> int:
    """The number of successful operations of all kinds."""
    return sum(operation.succeeded for operation in window.operations.values())


def answered(window: Done) -> int:
    """The number of operations of all kinds with a right answer, also if they stored nothing."""
    return sum(operation.ok for operation in window.operations.values())


def success_share(window: Done) -> float:
    """The successful part of the answered operations; 1 where none was answered.

    Parts of a window, such as the slices of its timeline, have only the answered ones.
    """
    return ok(window) / answered(window) if answered(window) else 1.0


def counted_slices(trial: Outcome) -> Slices | None:
    """The slices of a trial in rounds: successful operations only, and CPU time without turns'.

    An empty slice has shown what the messages of a turn cost the client; no operation needs it.
    Workers count those that stored nothing over all slices. Each slice is given its part of them,
    so the sum is right to one operation. None if the trial was not played in rounds.
    """
    if trial.rounds is None or trial.measure is None:
        return None
    slices, share = _without_turns(trial.rounds), success_share(trial.measure)
    if share == 1:
        return slices
    until = [round(count * share) for count in accumulate(slices.ops, initial=0)]
    ops = [after - before for before, after in pairwise(until)]
    failed = [of + all_ops - own
              for of, all_ops, own in zip(slices.errors, slices.ops, ops, strict=True)]  # fmt: skip
    return msgspec.structs.replace(slices, ops=ops, errors=failed)


def _without_turns(rounds: Rounds) -> Slices:
    spent = [max(0, ns - rounds.turn_cpu_ns) if ns >= 0 else ns
             for ns in rounds.slices.worker_cpu_ns]  # fmt: skip
    return msgspec.structs.replace(rounds.slices, worker_cpu_ns=spent)


def response_ns(operations: Sequence[Operation], percent: float) -> int | None:
    """A percentile of the merged response times in ns.

    None if there are too few operations, or if the percentile is only a lower bound.
    """
    quantile = CensoredTimes(operations).percentile(percent)
    if quantile is None or not quantile.exact:
        return None
    # A clock too coarse for an operation says 0, which is below what a histogram may hold.
    return max(histogram.LOWEST_NS, quantile.ns)


def is_withheld(trial: Outcome, percent: float, kind: str = "") -> bool:
    """Whether the verdict on a trial withholds a percentile of a kind, or of all kinds together."""
    alone = trial.measure is not None and len(trial.measure.operations) == 1
    judged = "" if alone else kind
    return any(each.kind == judged and each.percent == percent for each in trial.withheld)


def trial_response_ns(trial: Outcome, percent: float, kind: str = "") -> int | None:
    """A percentile of a trial, of a kind or of all kinds together; None if it is not shown."""
    if trial.measure is None or is_withheld(trial, percent, kind):
        return None
    operations = trial.measure.operations.items()
    return response_ns([op for name, op in operations if kind in ("", name)], percent)


def window_rate(trial: Outcome) -> float | None:
    """Successful operations per second of a trial, load generators included.

    None if it has no window.

    A window that ends by time: operations that ended within it, divided by its length. To divide by
    the time of the last reply instead would make one slow reply at the end look like a slow window.
    Rounds with void slices: the other slices, as the workers have counted all of them. Windows that
    end by themselves (a number of operations, a fill, a trace), and workers without a timeline: all
    of them, divided by the time until the last reply.
    """
    if trial.measure is None or not trial.measure.elapsed_ns:
        return None
    if trial.rounds is not None and trial.rounds.void_slices:
        slices = trial.rounds.slices
        counted = sum(slices.ops) * success_share(trial.measure)
        return counted / sum(slices.elapsed_ns) * 1e9 if sum(slices.elapsed_ns) else None
    windows = [trial.measure, *filter(None, [trial.generated])]
    return sum(answered_rate(trial, window) * success_share(window) for window in windows)


def answered_rate(trial: Outcome, window: Done) -> float:
    """Right answers per second in a window of a trial, also those that stored nothing.

    They are divided as in `window_rate`.
    """
    by_timeline = _timeline_rate(trial, window)
    whole = answered(window) / max(1, window.elapsed_ns) * 1e9
    return whole if by_timeline is None else by_timeline


def ends_by_time(trial: Outcome) -> bool:
    """Whether the window ends after a time, and not by itself."""
    return not plays_to_an_end(trial.workload)


def kind_rate(trial: Outcome, kinds: Sequence[str]) -> float | None:
    """The part of `window_rate` that some kinds of operations have."""
    whole, window = window_rate(trial), trial.measure
    if whole is None or window is None or not ok(window):
        return whole
    own = sum(of.succeeded for kind, of in window.operations.items() if kind in kinds)
    return whole * own / ok(window)


def _timeline_rate(trial: Outcome, window: Done) -> float | None:
    """The rate by the timeline; None if it does not show the end of a window by time."""
    timeline, length_ns = window.timeline, trial.timing.measure_ms * 1_000_000
    pauses = trial.load.rate is not None or trial.load.think is not None
    stopped = not pauses and window.elapsed_ns < _WHOLE * length_ns
    if timeline is None or not ends_by_time(trial) or stopped:
        return None
    whole = length_ns // timeline.slice_ns
    return sum(timeline.ok[:whole]) / (whole * timeline.slice_ns) * 1e9 if whole else None


def client_cpu_us(window: Done) -> float | None:
    """CPU time of the client's processes per answer; None if a worker does not report it."""
    spent_ns = window.cpu_user_ns + window.cpu_system_ns
    return spent_ns / 1e3 / answered(window) if spent_ns and answered(window) else None


def server_cpu_us(trial: Outcome) -> float | None:
    """CPU time of the server per answer; None for a remote server."""
    if trial.rounds is not None:
        return slices_cpu_us(trial.rounds.slices, trial.rounds.slices.server_cpu_ns)
    if trial.measure is None or trial.server_use is None:
        return None
    spent_ns = trial.server_use.cpu_ns
    done = sum(map(answered, filter(None, [trial.measure, trial.generated])))
    return spent_ns / 1e3 / done if spent_ns and done else None


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A figure by which trials are compared; `of` returns None if a trial does not have it.

    `percent`: it is this percentile of the response time.
    """

    name: str
    title: str
    unit: Literal["ops/s", "ns", "us", "bytes"]
    more_is_better: bool
    of: Callable[[Outcome], float | None]
    percent: float | None = None


def _percentile(percent: float) -> Figure:
    def of(trial: Outcome) -> float | None:
        window = trial.measure
        return response_ns(list(window.operations.values()), percent) if window else None

    name = f"p{percent:g}"
    return Figure(name=name, title=name, unit="ns", more_is_better=False, of=of, percent=percent)


def slices_cpu_us(slices: Slices, spent_ns: Sequence[int]) -> float | None:
    """CPU time per operation of slices; both include their lead-ins. None if it is not known."""
    played = sum(slices.ops) + sum(slices.errors) + sum(slices.lead_in_ops)
    known = bool(spent_ns) and min(spent_ns) >= 0
    return sum(spent_ns) / 1e3 / played if known and played and sum(spent_ns) else None


def _client_cpu(trial: Outcome) -> float | None:
    if (slices := counted_slices(trial)) is not None:
        return slices_cpu_us(slices, slices.worker_cpu_ns)
    return client_cpu_us(trial.measure) if trial.measure else None


def cpu_parts_us(trial: Outcome) -> tuple[float, float] | None:
    """User and system time of the client's processes for an answer; None if it is not known.

    In rounds the worker's own times have lead-ins and turns in them, so they give the parts only.
    """
    each_us, window = _client_cpu(trial), trial.measure
    if not each_us or window is None or not (spent := window.cpu_user_ns + window.cpu_system_ns):
        return None
    return each_us * window.cpu_user_ns / spent, each_us * window.cpu_system_ns / spent


def server_rss(trial: Outcome) -> float | None:
    """The server's resident memory after the window, in bytes; None if it is not known."""
    return trial.server_use.rss_after_bytes if trial.server_use else None


def _cost(
    name: str, title: str, unit: Literal["us", "bytes"], of: Callable[[Outcome], float | None]
) -> Figure:
    return Figure(name=name, title=title, unit=unit, more_is_better=False, of=of)


FigureName = Literal["rate", "p50", "p90", "p99", "p99.9", "client-cpu", "server-cpu", "server-rss"]
FIGURES = {
    figure.name: figure
    for figure in (
        Figure(name="rate", title="ops/s", unit="ops/s", more_is_better=True, of=window_rate),
        *map(_percentile, PERCENTILES),
        _cost("client-cpu", "client CPU/op", "us", _client_cpu),
        _cost("server-cpu", "server CPU/op", "us", server_cpu_us),
        _cost("server-rss", "server RSS", "bytes", server_rss),
    )
}


def showing(trials: Sequence[Outcome], figure: Figure) -> list[Outcome]:
    """The trials whose verdict does not withhold the figure."""
    return [trial for trial in trials if not withholds(trial, figure)]


def withholds(trial: Outcome, figure: Figure) -> bool:
    """Whether the verdict on a trial withholds a figure."""
    return figure.percent is not None and is_withheld(trial, figure.percent)


def figures_of(trials: Sequence[Outcome], figure: Figure) -> list[float] | None:
    """A figure of each trial; None if one of them does not have it, or if it is not above 0.

    To use only the trials that have it would bias the result: the slow trials are those with too
    few operations for a percentile. Leave out what a verdict withholds with `showing`.
    """
    values = [figure.of(trial) for trial in trials]
    positive = [float(value) for value in values if value is not None and value > 0]
    return positive if positive and len(positive) == len(values) else None
