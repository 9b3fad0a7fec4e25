"""Plots of a report as Vega-Lite specifications in JSON; `draw` renders them as SVG and PNG."""

from collections.abc import Iterator

import msgspec

from cachemark.report.document import Plot, Spec
from cachemark.report.json_text import json_text
from cachemark.report.model import CarryOverSection, Report
from cachemark.report.plots import timeline
from cachemark.report.plots.block_rates import block_rates
from cachemark.report.plots.cpu_time import cpu_time
from cachemark.report.plots.effects import effects
from cachemark.report.plots.images import png, svg
from cachemark.report.plots.latency_over_throughput import latency_over_throughput
from cachemark.report.plots.over_factor import over_factor
from cachemark.report.plots.overview import memory, overview
from cachemark.report.plots.palette import Theme, themed
from cachemark.report.plots.percentiles import percentiles
from cachemark.report.plots.plot import titled
from cachemark.report.plots.published import published
from cachemark.report.plots.ranking import ranking
from cachemark.report.plots.searches import capacity, searched_percentiles
from cachemark.report.plots.sittings import carry_over, narrowing, round_by_round
from cachemark.report.plots.summary_picture import summary_picture


class ReportPlots(msgspec.Struct, frozen=True, kw_only=True):
    """All plots of a report; `groups` and `sections` are in the order of the report's own."""

    overview: list[Plot]
    factors: list[Plot]
    groups: list[list[Plot]]
    loads: list[Plot]
    memory: list[Plot]
    sections: list[list[Plot]]

    def every(self) -> list[Plot]:
        """All of them, each name once."""
        all_plots = [*self.overview, *self.factors, *_flat(self.groups), *self.loads, *self.memory]
        all_plots += _flat(self.sections)
        names: dict[str, int] = {}
        unique: list[Plot] = []
        for plot in all_plots:
            names[plot.name] = count = names.get(plot.name, 0) + 1
            name = plot.name if count == 1 else f"{plot.name}-{count}"
            unique.append(msgspec.structs.replace(plot, name=name))
        return unique


def plots(report: Report, width: int) -> ReportPlots:
    """The plots of a report, each `width` pixels wide."""
    groups = [
        [
            # Two beside each other are about as high.
            ranking(group, report.trials, width),
            cpu_time(group, width),
            percentiles(group, width),
            block_rates(group, report.trials, width),
            narrowing(group, report.rounds, width),
            round_by_round(group, report.rounds, width),
            timeline.rate(group, report.trials, width),
            timeline.hit_ratio(group, report.trials, width),
            timeline.memory(group, report.trials, width),
        ]
        for group in report.groups
    ]
    return ReportPlots(
        overview=overview(report, width),
        factors=effects(report, width),
        groups=[[plot for plot in of_group if plot] for of_group in groups],
        loads=[*over_factor(report, width), *latency_over_throughput(report, width)],
        memory=memory(report, width),
        sections=_section_plots(report, width),
    )


def _section_plots(report: Report, width: int) -> list[list[Plot]]:
    """Plots of each section: of carry-over from its estimates, of all else from its bars."""
    sets = iter(carry_over(report.rounds, width))
    return [
        [next(sets)]
        if isinstance(section, CarryOverSection)
        else [
            *searched_percentiles(section, width),
            *capacity(section, width),
            *published(section, width),
        ]
        for section in report.sections
    ]


# Wide enough for a page's column.
_FILE_WIDTH = 680


class Style(msgspec.Struct, frozen=True, kw_only=True):
    """How pictures look: another title than the question, colours, and the size in pixels."""

    title: str = ""
    theme: Theme = "light"
    size: tuple[int, int] | None = None


_PLAIN = Style()


def plot_files(report: Report, form: str, style: Style = _PLAIN) -> Iterator[tuple[str, bytes]]:
    """Each plot as a file's name and content: `svg`, `png` or `vega-lite`."""
    for plot in plots(report, _FILE_WIDTH).every():
        own = msgspec.structs.replace(plot, title=style.title or plot.title)
        spec = themed(titled(own), style.theme)
        if form == "png":
            yield plot.name, png(spec)
        elif form == "svg":
            yield plot.name, svg(spec).encode("utf-8")
        else:
            yield plot.name, json_text(spec).encode("utf-8")


def summary_png(report: Report, answer: str, style: Style = _PLAIN) -> bytes:
    """The run as one PNG picture; empty if nothing was measured."""
    aspect = style.size[0] / style.size[1] if style.size else None
    spec = summary_picture(report, answer, style.title, aspect)
    if not spec:
        return b""
    spec = themed(spec, style.theme)
    return png(*fitted(spec, style.size)) if style.size else png(spec)


def fitted(spec: Spec, size: tuple[int, int]) -> tuple[Spec, float]:
    """A picture in the middle of a page of `size` pixels, which it fills one way; its scale."""
    scale = min(size[0] / spec["width"], size[1] / spec["height"])
    across = (size[0] / scale - spec["width"]) / 2
    down = (size[1] / scale - spec["height"]) / 2
    margins = {"left": across, "right": across, "top": down, "bottom": down}
    return {**spec, "padding": margins}, scale


def _flat(nested: list[list[Plot]]) -> list[Plot]:
    return [plot for inner in nested for plot in inner]
