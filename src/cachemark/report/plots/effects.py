"""Small multiples, one for each factor: the effect of each level on the rate."""

import math
from collections.abc import Sequence

import msgspec

from cachemark.analysis.statistics import CellSummary, Interval
from cachemark.model.client_name import parse_client_name
from cachemark.model.experiment import Load
from cachemark.report.document import Plot, Table, plain_table
from cachemark.report.model import Report
from cachemark.report.plots.bar_chart import BarItem, bar_chart
from cachemark.report.plots.layout import TIMES_LABEL
from cachemark.report.plots.plot import slug

# In the order in which they are shown. Which client is best is what the groups are about.
FACTORS = (
    "server",
    "workload",
    "profile",
    "wire",
    "processes",
    "threads",
    "connections",
    "depth",
    "refill",
)
_Setting = dict[str, str]


class FactorLevel(msgspec.Struct, frozen=True, kw_only=True):
    """A level against the base level: a ratio for each pair of cells, and their geometric mean."""

    name: str
    ratio: float
    pairs: list[float]


class Factor(msgspec.Struct, frozen=True, kw_only=True):
    """A factor with its base level, and the other levels that have pairs with the base."""

    name: str
    base: str
    levels: list[FactorLevel]


def factors(report: Report) -> list[Factor]:
    """The factors with at least two levels, from cells of closed loops that have a figure."""
    loads = {load.name: load for load in report.header.experiment.loads}
    cells = [
        (setting(row.summary, loads[group.load]), row.summary.total.rate.value)
        for group in report.groups
        if group.metric == "rate"
        for row in group.rows
        if row.summary.total is not None
    ]
    ranks = {
        "server": report.header.experiment.servers,
        "workload": [workload.name for workload in report.header.experiment.workloads],
        "wire": [load.wire for load in loads.values()],
        "profile": ["common", "defaults"],
        "refill": ["each", "all"],
    }
    candidates = (_factor(name, cells, ranks.get(name, [])) for name in FACTORS)
    return [factor for factor in candidates if factor]


def setting(summary: CellSummary, load: Load) -> _Setting:
    """A cell's level of each factor; a client's options count as part of the client."""
    cell = summary.cell
    name = parse_client_name(cell.client)
    return {
        "client": name.with_shared_settings,
        "profile": "defaults" if name.own_settings else "common",
        "server": cell.server,
        "workload": cell.workload,
        "wire": load.wire,
        "processes": str(load.processes),
        "threads": str(load.threads),
        # Equal to the threads is the same level at any number of threads.
        "connections": "one a caller" if load.connections is None else str(load.connections),
        "depth": str(load.depth),
        "refill": load.refill,
        # Not a factor to report, but cells that differ in it do other work.
        "think": load.think or "",
        "hosts": str(load.hosts),
    }


def _factor(
    name: str, cells: Sequence[tuple[_Setting, float]], ranks: Sequence[str]
) -> Factor | None:
    names = sorted({own[name] for own, _ in cells}, key=lambda level: _place(level, ranks))
    if len(names) < 2:
        return None
    base, *others = names
    rates = {_rest(own, name): rate for own, rate in cells if own[name] == base}
    levels = [_level(name, other, cells, rates) for other in others]
    known = [level for level in levels if level.pairs]
    return Factor(name=name, base=base, levels=known) if known else None


def _place(level: str, ranks: Sequence[str]) -> tuple[int, int, str]:
    """Sort levels by the order of the experiment, numbers by value, other words alphabetically."""
    rank = ranks.index(level) if level in ranks else len(ranks)
    return (rank, int(level) if level.isdecimal() else 0, level)


def _level(
    name: str,
    level: str,
    cells: Sequence[tuple[_Setting, float]],
    rates: dict[tuple[str, ...], float],
) -> FactorLevel:
    pairs = [
        rate / rates[_rest(own, name)]
        for own, rate in cells
        if own[name] == level and _rest(own, name) in rates
    ]
    logs = [math.log(pair) for pair in pairs]
    mean = math.exp(sum(logs) / len(logs)) if logs else 1.0
    return FactorLevel(name=level, ratio=mean, pairs=pairs)


def _rest(own: _Setting, name: str) -> tuple[str, ...]:
    return tuple(level for factor, level in sorted(own.items()) if factor != name)


def effects(report: Report, width: int) -> list[Plot]:
    """One plot for each factor with at least two levels."""
    return [_plot(factor, width) for factor in factors(report)]


def _plot(factor: Factor, width: int) -> Plot:
    items = [
        BarItem(
            label=factor.base,
            role="yardstick",
            of=Interval(value=1.0),
            figure="1 ×",
            description=f"{factor.base}: the base of the other levels",
        ),
        *[_item(level) for level in factor.levels],
    ]
    bars_text = "; ".join(item.description for item in items[1:])
    return Plot(
        name=slug("factor", factor.name),
        title=factor.name.capitalize(),
        caption="",
        alt=f"Bar chart of the rate at each {factor.name} over that at {factor.base}: {bars_text}.",
        spec=bar_chart(
            items, width, axis=f"rate, as a multiple of {factor.base}", labels=TIMES_LABEL
        ),
        table=_table(factor),
        subtitle="all else being equal",
    )


def _item(level: FactorLevel) -> BarItem:
    ratios = level.pairs
    description = f"{level.name}: {level.ratio:.2f} times, from {len(ratios)} pairs of cells"
    if len(ratios) > 1:
        description += f", {min(ratios):.2f} to {max(ratios):.2f}"
    return BarItem(
        label=level.name,
        role="first",
        of=Interval(value=level.ratio),
        figure=f"{level.ratio:.2f} ×",
        description=description,
        dots=ratios if len(ratios) > 1 else [],
    )


def _table(factor: Factor) -> Table:
    rows = [
        [
            level.name,
            f"{level.ratio:.2f}",
            f"{min(level.pairs):.2f}",
            f"{max(level.pairs):.2f}",
            str(len(level.pairs)),
        ]
        for level in factor.levels
    ]
    columns = [factor.name, f"× {factor.base}", "least", "most", "pairs of cells"]
    return plain_table(columns=columns, rows=rows)
