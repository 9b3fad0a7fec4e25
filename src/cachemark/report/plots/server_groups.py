"""Groups of a report that differ in their server only, and are shown side by side."""

import msgspec

from cachemark.model.plan import NO_SERVER
from cachemark.report.model import Group, Report, ranked_figure
from cachemark.report.plots.plot import slug

# Where the longest bar is shorter than this part of its axis, all of them are slivers: in a small
# panel, thinner than the lines of their own intervals.
_MIN_BAR_PART = 1 / 10


class ServerGroups(msgspec.Struct, frozen=True, kw_only=True):
    """The groups of one workload and load; `apart` if all of them are in-process caches.

    `servers` are those of all groups of the report that are shown in the same way.
    """

    groups: list[Group]
    servers: frozenset[str]
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
    would somewhere be too short to read; then all of them come last, with axes of their own.
    """
    experiment = report.header.experiment
    workloads = [workload.name for workload in experiment.workloads]
    loads = [load.name for load in experiment.loads]
    together: dict[tuple[int, int], list[Group]] = {}
    for group in report.groups:
        key = (workloads.index(group.workload), loads.index(group.load))
        together.setdefault(key, []).append(group)
    works = [together[key] for key in sorted(together)]
    if not any(_dwarfs(groups) for groups in works):
        return _alike(works)
    networked = [[group for group in groups if group.server != NO_SERVER] for groups in works]
    in_process = [[group for group in groups if group.server == NO_SERVER] for groups in works]
    return [*_alike(networked), *_alike(in_process, apart=True)]


def _alike(works: list[list[Group]], *, apart: bool = False) -> list[ServerGroups]:
    """The works that have a group left, with the servers of all of them."""
    rows = [row for groups in works for group in groups for row in group.rows]
    servers = frozenset(row.summary.cell.server for row in rows)
    return [ServerGroups(groups=groups, servers=servers, apart=apart) for groups in works if groups]


def _dwarfs(groups: list[Group]) -> bool:
    """Whether in-process caches would leave slivers of the bars of the others."""
    in_process = [group for group in groups if group.server == NO_SERVER]
    networked = [group for group in groups if group.server != NO_SERVER]
    rates = groups[0].metric == "rate"
    shortest = _MIN_BAR_PART * _highest(in_process)
    return bool(networked) and rates and _highest(networked) < shortest


def _highest(groups: list[Group]) -> float:
    figures = [ranked_figure(row.summary, group.metric) for group in groups for row in group.rows]
    return max((of.value for of in figures if of), default=0.0)
