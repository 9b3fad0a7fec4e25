"""How often trials were replayed (`until_valid`), and for which cells that was not enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from cachemark.analysis.number_format import count_of
from cachemark.model.experiment import Experiment
from cachemark.report.cells import cell_title
from cachemark.report.model import TrialRow


def replay_lines(experiment: Experiment, trials: Sequence[TrialRow]) -> list[str]:
    """The number of replays, and a line for each cell that still has too few valid trials."""
    wanted = experiment.until_valid
    if wanted is None:
        return []
    played = [row for row in trials if row.verdict != "unsupported"]
    tries = Counter(row.cell for row in played)
    valid = Counter(row.cell for row in played if row.verdict == "VALID")
    replays = len(played) - len({(row.block, row.cell) for row in played})
    lines = [
        f"Replayed: {replays} of {count_of(len(played), 'trial')}, since the machine was disturbed "
        "or they failed before they began, and for no rate or time that was measured."
    ]
    return (lines if replays else []) + [
        f"{cell_title(cell)}: {count_of(count, 'trial')}, and {valid[cell]} of {wanted} are valid."
        for cell, count in tries.items()
        if valid[cell] < wanted
    ]
