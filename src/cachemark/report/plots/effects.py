"""Small multiples, one for each factor: the effect of each level on the rate."""

from cachemark.report.document import Table, plain_table
from cachemark.report.factors import Factor, FactorLevel, factors
from cachemark.report.model import Report
from cachemark.report.plots.bar_chart import BarItem, bar_chart
from cachemark.report.plots.plot import Plot, slug

_LABEL = "format(datum.value, '~r') + ' ×'"


def effects(report: Report, width: int) -> list[Plot]:
    """One plot for each factor with at least two levels."""
    return [_plot(factor, width) for factor in factors(report)]


def _plot(factor: Factor, width: int) -> Plot:
    items = [
        BarItem(
            label=factor.base,
            role="yardstick",
            value=1.0,
            figure="1 ×",
            description=f"{factor.base}: what the others are held against",
        ),
        *[_item(level) for level in factor.levels],
    ]
    bars_text = "; ".join(item.description for item in items[1:])
    return Plot(
        name=slug("factor", factor.name),
        title=factor.name.capitalize(),
        caption="",
        alt=f"Bar chart of the rate at each {factor.name} over that at {factor.base}: {bars_text}.",
        spec=bar_chart(items, width, axis=f"rate, as a multiple of {factor.base}", labels=_LABEL),
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
        value=level.ratio,
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
