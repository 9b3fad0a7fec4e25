"""What a run's sittings are to answer, and when it looks: fixed before the run."""

from __future__ import annotations

from collections.abc import Sequence

from cachemark.analysis.rounds.looks import LOOKS, StopRule
from cachemark.analysis.rounds.questions import Question, questions_of
from cachemark.endpoints.clients import NATIVE
from cachemark.model.experiment import Experiment
from cachemark.model.outcome import Cell


def stop_rule(experiment: Experiment) -> StopRule:
    """The margin and the looks of an experiment; without looks, it answers once, at its end."""
    settled = experiment.rounds.until == "settled"
    looks = tuple(at for at in LOOKS if at <= experiment.blocks) if settled else ()
    return StopRule(margin=experiment.margin_percent / 100, looks=looks)


def asked(experiment: Experiment, cells: Sequence[Cell]) -> list[Question]:
    """The questions about some cells of an experiment.

    Where libraries are compared, the native client is their yardstick and no choice.
    """
    libraries = [cell for cell in cells if cell.client.partition("?")[0] != NATIVE]
    several = len({cell.client for cell in libraries}) > 1
    return questions_of(libraries if several else list(cells), experiment.twice)
