"""Published figures beside the measured ones: one small chart for each measure of a section.

A bar is a multiple of the best figure of its own column, published or measured, because absolute
figures of different machines have no common scale. The best is that of the cells that both columns
have. The figures are printed beside the bars.
"""

from cachemark.analysis.number_format import number
from cachemark.analysis.statistics import Interval
from cachemark.report.document import Plot, plain_table
from cachemark.report.model import Bar, Section
from cachemark.report.plots.bar_chart import BarItem, bar_chart
from cachemark.report.plots.layout import TIMES_LABEL
from cachemark.report.plots.palette import ColourRole
from cachemark.report.plots.plot import slug

_KEY: tuple[tuple[ColourRole, str], ...] = (("yardstick", "published"), ("first", "measured here"))


def published(section: Section, width: int) -> list[Plot]:
    """The section's plots; empty if it has no figures to plot."""
    measures = list(dict.fromkeys(bar.measure for bar in section.bars))
    return [_plot(section, measure, width) for measure in measures]


def _plot(section: Section, measure: str, width: int) -> Plot:
    bars = _sorted_bars([bar for bar in section.bars if bar.measure == measure])
    best = {whose: _best(_comparable(bars, whose), section) for whose in (True, False)}
    ratios = [bar.value / best[bar.published] for bar in bars]
    items = [_item(bar, ratio, section.unit) for bar, ratio in zip(bars, ratios, strict=True)]
    bars_text = "; ".join(item.description for item in items)
    meaning = "× best, published or here"
    if not section.more_is_better:
        meaning += "; less is faster"
    return Plot(
        name=slug("published", section.title, measure),
        title=measure,
        caption="",
        alt=f"Bar chart of {section.unit}, {measure}, {meaning}: {bars_text}.",
        spec=bar_chart(
            items, width, axis=f"{section.unit}, {meaning}", labels=TIMES_LABEL, key=_KEY
        ),
        subtitle=section.title,
        table=plain_table(
            columns=["cell", "whose", section.unit, "× best"],
            rows=[
                [bar.label, _origin(bar), number(bar.value), f"{ratio:.2f}"]
                for bar, ratio in zip(bars, ratios, strict=True)
            ],
        ),
    )


def _comparable(bars: list[Bar], whose: bool) -> list[float]:
    """The figures of the cells that both columns have; if there is none, all of this column."""
    others = {bar.label for bar in bars if bar.published != whose}
    own = [bar for bar in bars if bar.published == whose]
    return [bar.value for bar in own if bar.label in others] or [bar.value for bar in own]


def _sorted_bars(bars_: list[Bar]) -> list[Bar]:
    """A published figure next to the measured one of the same cell."""
    names = list(dict.fromkeys(bar.label for bar in bars_))
    return sorted(bars_, key=lambda bar: (names.index(bar.label), not bar.published))


def _best(values: list[float], section: Section) -> float:
    if not values:
        return 1.0
    return max(values) if section.more_is_better else min(values)


def _item(bar: Bar, ratio: float, unit: str) -> BarItem:
    return BarItem(
        # The words in brackets are for the table.
        label=bar.label.partition(" (")[0],
        role="yardstick" if bar.published else "first",
        of=Interval(value=ratio),
        figure=number(bar.value),
        description=f"{bar.label}, {_origin(bar)}: {number(bar.value)} {unit}",
    )


def _origin(bar: Bar) -> str:
    return "published" if bar.published else "here"
