"""The questions of a run in rounds, and its looks: fixed before the run."""

from collections.abc import Sequence

from cachemark.analysis.rounds.looks import LOOKS, MIN_BLOCKS, StopRule, looks_that_fit
from cachemark.analysis.rounds.questions import Question, questions_of
from cachemark.model.client_name import parse_client_name
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Experiment
from cachemark.model.outcome import Cell
from cachemark.model.plan import Plan, is_repeat, uses_rounds
from cachemark.runs.planning.planned_time import block_s

# A time limit is refused if even a machine that needs less than planned has too little time.
_PART_OF_PLANNED = 0.75


def stop_rule(experiment: Experiment) -> StopRule:
    """The margin and the looks of an experiment; without looks, it answers once, at its end."""
    margin = experiment.margin_percent / 100
    if not uses_rounds(experiment):
        return StopRule(margin=margin, looks=(), least=MIN_BLOCKS, unit="block")
    settled = experiment.rounds.until == "settled"
    looks = tuple(at for at in LOOKS if at <= experiment.blocks) if settled else ()
    return StopRule(margin=margin, looks=looks, planned=experiment.blocks)


def check_looks(plan: Plan, cpus: int) -> None:
    """Raise UsageError if a run that stops when it is settled has no time for its first look.

    `cpus` is the number of CPUs that the run may use.
    """
    limit_s, rule = plan.experiment.rounds.max_s, stop_rule(plan.experiment)
    if limit_s is None or not rule.looks or not plan.sittings:
        return
    each_s = block_s(plan, cpus)
    if not looks_that_fit(limit_s, _PART_OF_PLANNED * each_s, rule.looks):
        raise UsageError(
            f"the first answer comes after {rule.first} sittings, which take about "
            f"{rule.first * each_s:.0f} s; the time limit is {limit_s} s",
            "a longer --max (rounds.max_s), fewer clients or servers, a shorter "
            "timing.measure_ms, or --set rounds.until=fixed",
        )


def asked(experiment: Experiment, cells: Sequence[Cell]) -> list[Question]:
    """The questions about some cells of an experiment.

    Where libraries are compared, the native client is their yardstick and no choice. The loop
    without a library is no client at all.
    """
    clients = [cell for cell in cells if not parse_client_name(cell.client).is_null]
    native = [cell for cell in clients if parse_client_name(cell.client).is_native]
    libraries = [cell for cell in clients if cell not in native]
    if len({cell.client for cell in libraries if not is_repeat(cell)}) < 2:
        return questions_of(clients, experiment.twice)
    return questions_of(libraries, experiment.twice, beside=native)
