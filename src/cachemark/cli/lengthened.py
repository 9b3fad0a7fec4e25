"""The change that `run --resume` may make: how long a run in rounds goes on."""

import dataclasses

import msgspec

from cachemark.cli.overrides import seconds
from cachemark.cli.run_options import RunOptions
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Experiment
from cachemark.model.plan import uses_rounds
from cachemark.runs.storage.store import Run

_REMEDY = (
    "leave the other options out; a run in rounds may get a longer --max, or more --blocks, and a "
    "search more --blocks"
)


def lengthen(stored: Run, options: RunOptions) -> None:
    """Store the typed length in the run's header. Raises UsageError.

    A run with one planned look, at its end, then has several, so each has the stricter level; looks
    beyond the last planned one are stricter still. More blocks of a search are more searches of
    each cell.
    """
    if not options.are_given:
        return
    if dataclasses.replace(options, max=None, blocks=None).are_given:
        raise UsageError(
            "--resume continues a run with the options that it was started with", _REMEDY
        )
    planned = stored.header.experiment
    if planned.search and options.max is not None:
        raise UsageError(
            f"{stored.id} is a search, which ends when its rates are found, not at a time",
            "leave --max out; more --blocks are more searches of each cell",
        )
    if not uses_rounds(planned) and not planned.search:
        raise UsageError(
            f"{stored.id} plays trials, which answer once, after all blocks",
            "leave --max and --blocks out, or start a longer run",
        )
    longer = _with_blocks(stored, _with_time(planned, options.max), options.blocks)
    with stored:
        stored.store_experiment(longer)


def _with_time(planned: Experiment, text: str | None) -> Experiment:
    if text is None:
        return planned
    limit_s, was_s = seconds(text), planned.rounds.max_s
    if was_s is None or limit_s < was_s:
        now = "has no limit" if was_s is None else f"may take {was_s} s"
        raise UsageError(f"--max {text}: the run {now}", "name a longer time, or leave it out")
    rounds = msgspec.structs.replace(planned.rounds, max_s=limit_s)
    return msgspec.structs.replace(planned, rounds=rounds)


def _with_blocks(stored: Run, planned: Experiment, blocks: int | None) -> Experiment:
    if blocks is None:
        return planned
    if blocks < planned.blocks:
        raise UsageError(
            f"--blocks {blocks}: the run has {planned.blocks}", "name more, or leave it out"
        )
    audit = stored.audit()
    if audit is not None and audit.skipped:
        raise UsageError(
            f"{stored.id} has cells that cannot be played here, numbered behind its blocks",
            "start a new run without these cells, with more --blocks",
        )
    if planned.search:
        return msgspec.structs.replace(planned, blocks=blocks)
    rounds = msgspec.structs.replace(planned.rounds, until="settled")
    return msgspec.structs.replace(planned, blocks=blocks, rounds=rounds)
