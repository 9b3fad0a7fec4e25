"""The floors of a run's clients: what each costs by itself, and how fast it is on time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cachemark.analysis.number_format import number, time
from cachemark.model.experiment import Experiment
from cachemark.report.value import Section
from cachemark.runs.calibrate.calibration_store import latest
from cachemark.runs.calibrate.value import HEADROOM, Calibration, headroom


def columns() -> list[str]:
    """The heads of `row`."""
    return ["client", "callers", "against", "ops/s", "p50", "p99", "p99.9", "clean up to", "of"]


def row(of: Calibration) -> list[str]:
    """A calibration's figures; a dash where there is none."""
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
    """The floors of a run's clients on its machine; none where nothing was calibrated."""
    found = latest(calibrations, host, experiment.clients)
    if not found:
        return []
    return [
        Section(
            title="What the clients cost by themselves",
            columns=columns(),
            rows=[row(each) for each in found],
            notes=[
                "callers: threads × connections × depth; against a responder that answers without "
                "looking (`null`), or the embedded server. Not subtracted from anything: "
                "percentiles do not subtract.",
                *_close(experiment, found),
            ],
            topic="loops",
        )
    ]


def _close(experiment: Experiment, found: Iterable[Calibration]) -> list[str]:
    """Rates that the client itself is not far enough above."""
    return [
        f"{each.client}, {load.name}: {number(load.rate or 0)}/s is {part:.0%} of the highest "
        f"clean rate; above {HEADROOM:.0%} a figure may be the client's own"
        for each in found
        for load in experiment.loads
        if (part := headroom(each, load)) is not None and part > HEADROOM
    ]
