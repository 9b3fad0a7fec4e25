"""A run's report with its answers and groups only, as a list of runs needs them."""

from collections.abc import Sequence

from cachemark.analysis.rounds.pairs import primary_figure
from cachemark.analysis.statistics import summarise
from cachemark.model.outcome import Outcome
from cachemark.model.plan import is_repeat
from cachemark.model.run_header import RunHeader
from cachemark.report import rounds
from cachemark.report.build import build, sentences
from cachemark.report.groups import make_groups
from cachemark.report.model import Report


def build_head(header: RunHeader, outcomes: Sequence[Outcome]) -> Report:
    """The head of a report. Each cell has only the figure that decides, which takes little time."""
    experiment = header.experiment
    if experiment.search:
        return build(header, outcomes)
    played = summarise(outcomes, brief=True)
    summaries = [summary for summary in played if not is_repeat(summary.cell)]
    closed = {load.schedule == "closed" for load in experiment.loads}
    figures = sorted({primary_figure(closed=each) for each in closed})
    answers = rounds.run_answers(experiment, outcomes, figures=figures)
    groups = make_groups(summaries, answers, experiment)
    return Report(
        header=header,
        answers=sentences(answers, groups, outcomes, experiment),
        rounds=answers if rounds.is_in_turns(outcomes) else None,
        groups=groups,
    )
