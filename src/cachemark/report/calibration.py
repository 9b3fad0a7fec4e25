"""The cost of a run's clients: their floors and clean rates, and the workers' own loops."""

from collections.abc import Iterable, Sequence

from cachemark.analysis.number_format import number, time
from cachemark.analysis.statistics import CellSummary
from cachemark.model.calibration import HEADROOM, Calibration, headroom, latest_calibrations
from cachemark.model.client_name import parse_client_name
from cachemark.model.experiment import Experiment
from cachemark.model.plan import NO_SERVER, loads_differing_only_in_wire, workload_of
from cachemark.report.model import Section


def calibration_columns() -> list[str]:
    """The column headings of `row`."""
    return ["client", "callers", "against", "ops/s", "p50", "p99", "p99.9", "clean rate", "of"]


def calibration_row(of: Calibration) -> list[str]:
    """A calibration's figures, with a dash for each missing one."""
    callers = f"{of.threads} × {of.connections} × {of.depth}"
    floor = of.floor
    figures = (
        [number(floor.ops_per_s), *map(time, (floor.p50_ns, floor.p99_ns, floor.p999_ns))]
        if floor
        else ["–"] * 4
    )
    clean = f"{number(of.clean_rate)}/s" if of.clean_rate else of.why or "–"
    return [of.client, callers, of.against, *figures, clean, of.at[:10]]


def sections(
    experiment: Experiment, calibrations: Sequence[Calibration], host: str
) -> list[Section]:
    """The calibrations of a run's clients on its machine; empty if there are none."""
    latest = latest_calibrations(calibrations, host, experiment.clients)
    if not latest:
        return []
    return [
        Section(
            title="The clients' own cost",
            columns=calibration_columns(),
            rows=[calibration_row(each) for each in latest],
            notes=[
                "callers: threads × connections × depth; measured against a responder that "
                "answers every request with the same bytes (`null`), or the embedded server. "
                "These figures are not subtracted from others, because percentiles cannot be "
                "subtracted.",
                *_close(experiment, latest),
            ],
            topic="loops",
        )
    ]


def _close(experiment: Experiment, latest: Iterable[Calibration]) -> list[str]:
    """A note for each load whose rate is too close to the client's clean rate."""
    return [
        f"{each.client}, {load.name}: {number(load.rate or 0)}/s is {part:.0%} of the client's "
        f"clean rate; above {HEADROOM:.0%}, the figures may be limited by the client itself"
        for each in latest
        for load in experiment.loads
        if (part := headroom(each, load)) is not None and part > HEADROOM
    ]


# A loop above this part of the fastest client's time would distort the comparison.
_LIMIT_PERCENT = 5.0


def overhead_sections(experiment: Experiment, summaries: list[CellSummary]) -> list[Section]:
    """One row for each runtime, workload and load that `null` played; empty if there are none.

    The client `null` does nothing, so its CPU time per operation is the runtime's loop.
    """
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
