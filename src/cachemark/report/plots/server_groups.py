"""Groups of a report that differ in their server only, and are shown side by side."""

from __future__ import annotations

import msgspec

from cachemark.model.plan import NO_SERVER
from cachemark.report.model import Group, Report
from cachemark.report.plots.plot import slug
from cachemark.report.plots.ranking import ranked_figure

# A bar shorter than this part of its axis is a sliver: thinner than the line of its own interval.
_MIN_BAR_PART = 1 / 50


class ServerGroups(msgspec.Struct, frozen=True, kw_only=True):
    """The groups of one workload and load; `apart` if all of them are in-process caches."""

    groups: list[Group]
    apart: bool = False

    @property
    def title(self) -> str:
        """Such as `get · 1-thread`."""
        first = self.groups[0]
        return f"{first.workload} · {first.load}" + (" · in the process" if self.apart else "")

    def name(self, plot: str) -> str:
        """The name of a plot's file, one for each in a report."""
        first = self.groups[0]
        return slug(plot, first.workload, first.load, *(["in-process"] if self.apart else []))


def server_groups(report: Report) -> list[ServerGroups]:
    """All groups, in the order of the experiment.

    In-process caches are shown beside clients that use the network, unless the bars of the latter
    would be too short to read; then they have an axis of their own.
    """
    experiment = report.header.experiment
    workloads = [workload.name for workload in experiment.workloads]
    loads = [load.name for load in experiment.loads]
    together: dict[tuple[int, int], list[Group]] = {}
    for group in report.groups:
        key = (workloads.index(group.workload), loads.index(group.load))
        together.setdefault(key, []).append(group)
    return [work for key in sorted(together) for work in _split(together[key])]


def _split(groups: list[Group]) -> list[ServerGroups]:
    in_process = [group for group in groups if group.server == NO_SERVER]
    networked = [group for group in groups if group.server != NO_SERVER]
    rates = groups[0].metric == "rate"
    if networked and rates and _highest(networked) < _MIN_BAR_PART * _highest(in_process):
        return [ServerGroups(groups=networked), ServerGroups(groups=in_process, apart=True)]
    return [ServerGroups(groups=groups)]


def _highest(groups: list[Group]) -> float:
    figures = [ranked_figure(row, group.metric) for group in groups for row in group.rows]
    return max((of.value for of in figures if of), default=0.0)
