"""The CPU time of the workers' own loops, compared with the libraries that they drive.

The client `null` of a runtime does nothing, so its CPU time per operation is that of the loop.
"""

from cachemark.analysis.statistics import CellSummary
from cachemark.model.client_name import parse_client_name
from cachemark.model.experiment import Experiment
from cachemark.model.plan import NO_SERVER, loads_differing_only_in_wire, workload_of
from cachemark.report.model import Section

# Above this part of the fastest client the loop would tell in the comparison.
_LIMIT_PERCENT = 5.0


def sections(experiment: Experiment, summaries: list[CellSummary]) -> list[Section]:
    """One row for each runtime, workload and load that `null` played; empty if there are none."""
    rows = [
        _row(summary, summaries, experiment)
        for summary in summaries
        if parse_client_name(summary.cell.client).is_null
    ]
    shown = [row for row in rows if row]
    if not shown:
        return []
    return [
        Section(
            title="The cost of the workers' own loops",
            topic="loops",
            columns=["runtime", "workload", "load", "loop CPU/op", "fastest client",
                     "its CPU/op", "loop's share"],
            rows=shown,
            notes=[
                f"a loop that takes more than {_LIMIT_PERCENT:g} % of the CPU time of its "
                "fastest client is marked with !: it affects comparisons between languages",
            ],
        )
    ]  # fmt: skip


def _row(null: CellSummary, summaries: list[CellSummary], experiment: Experiment) -> list[str]:
    cell, loop = null.cell, null.client_cpu_us
    if loop is None:
        return []
    runtime = cell.client.partition("/")[0]
    loads = loads_differing_only_in_wire(experiment, workload_of(experiment, cell), cell.load)
    others = [
        (summary.client_cpu_us.value, summary.cell.client)
        for summary in summaries
        if summary.cell.client.startswith(f"{runtime}/")
        and summary.cell.workload == cell.workload
        and summary.cell.load in loads
        and summary.cell.server != NO_SERVER
        and summary.client_cpu_us is not None
    ]
    own = f"{loop.value:.2f} µs"
    if not others:
        return [runtime, cell.workload, cell.load, own, "–", "–", "–"]
    cpu_us, fastest = min(others)
    percent = 100 * loop.value / cpu_us
    mark = " !" if percent > _LIMIT_PERCENT else ""
    part = f"{percent:.1f} %{mark}"
    return [runtime, cell.workload, cell.load, own, fastest, f"{cpu_us:.1f} µs", part]
