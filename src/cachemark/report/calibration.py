"""The calibrations of a run's clients: their floors and clean rates."""

from collections.abc import Iterable, Sequence

from cachemark.analysis.number_format import number, time
from cachemark.model.calibration import HEADROOM, Calibration, headroom, latest_calibrations
from cachemark.model.experiment import Experiment
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
