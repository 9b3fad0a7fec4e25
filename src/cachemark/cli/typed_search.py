"""`--search`, put into an experiment: open loops without a rate, played as trials. Pure."""

import msgspec

from cachemark.cli.typed_experiment import MIN_WINDOW_MS
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Experiment, Load
from cachemark.model.search_steps import parse_objective
from cachemark.model.work_settings import WorkSettings

# Searches of each cell, where no number of blocks is typed: enough to see how far they scatter.
_BLOCKS = 3


def searched(
    experiment: Experiment,
    text: str,
    typed: WorkSettings,
    *,
    blocks: int | None,
    window_typed: bool,
    twice: str | None,
    design: str | None,
) -> Experiment:
    """The experiment as a search. Raises UsageError for options that contradict it."""
    parse_objective(text, "--search")
    if "rate" in typed.load:
        raise UsageError("--search tries rates itself", "leave out --rate")
    schedule = str(typed.load.get("schedule", ""))
    if schedule == "closed" or schedule.startswith("replay"):
        raise UsageError(
            "--search tries rates, but a closed loop or a replay has no rate",
            "leave out --schedule, or use poisson, uniform, gpareto or bursts",
        )
    if typed.load.get("think"):
        raise UsageError("--search plays open loops, which have no think time", "leave out --think")
    if design == "rounds":
        raise UsageError("--search plays trials, not rounds", "leave out --design rounds")
    timing = experiment.timing
    if not window_typed and timing.measure_ms < MIN_WINDOW_MS:
        timing = msgspec.structs.replace(timing, measure_ms=MIN_WINDOW_MS)
    return msgspec.structs.replace(
        experiment,
        search=text,
        question=f"Which is the highest rate with {text}?",
        analysis="",
        design="trials",
        blocks=blocks or _BLOCKS,
        timing=timing,
        twice=twice or "",
        loads=[_opened(load) for load in experiment.loads],
    )


def _opened(load: Load) -> Load:
    """Poisson arrivals in the place of a closed loop, or of a fixed rate."""
    schedule = "poisson" if load.schedule == "closed" else load.schedule
    return msgspec.structs.replace(load, schedule=schedule, rate=None, think=None)
