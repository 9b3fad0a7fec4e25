"""Checks that a run fits its header, with sane figures; the programs that it names. Pure.

A run of one's own passes. One that was imported may hold anything that has the right types.
"""

import datetime
import math
from collections.abc import Iterator, Sequence
from typing import cast

import msgspec

from cachemark.model import histogram
from cachemark.model.client_name import parse_client_name
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Experiment
from cachemark.model.experiment_limits import check_limits
from cachemark.model.outcome import Outcome
from cachemark.model.plan import cells, trial_count, trials_per_cell
from cachemark.model.protocol import Done
from cachemark.model.run_header import RunHeader
from cachemark.model.search_steps import played_experiment

# A client or server with one of these in its text names a program or another machine.
_NAMES_A_PROGRAM = ("command:", "binary=", "quickcached:", "remote:")
# Above any real figure, and below what overflows when ten thousand are added up. Times in ns since
# 1970 need 61 bits.
_MAX_NUMBER = 2**61
_MAX_TEXT = 2**20
_MAX_ENTRIES = 100_000
_MAX_NAME = 1000


def check_run(header: RunHeader, outcomes: Sequence[Outcome]) -> None:
    """Raise UsageError for the first thing that cannot be."""
    experiment = header.experiment
    check_limits(experiment, "its experiment")
    _check_sizes(header, "its header")
    _check_time(header.created_at, "its header: created_at")
    trials = trial_count(experiment) * trials_per_cell(experiment)
    if experiment.search:
        experiment = played_experiment(experiment, [outcome.load for outcome in outcomes])
    grid = set(cells(experiment))
    if len(outcomes) > trials:
        raise UsageError(f"{len(outcomes)} outcomes of {trials} trials")
    for number, outcome in enumerate(outcomes, 1):
        where = f"outcome {number}"
        trial = outcome.trial
        if trial.cell not in grid:
            raise UsageError(f"{where}: its cell is not part of the experiment")
        if not (0 <= trial.index < trials and 0 <= trial.block < experiment.blocks):
            raise UsageError(f"{where}: trial {trial.index} of block {trial.block} is not planned")
        _check_sizes(outcome, where)
        _check_window(outcome, where)


def _check_time(text: str, where: str) -> None:
    try:
        datetime.datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{where}: not a time") from error


def _check_window(outcome: Outcome, where: str) -> None:
    done = outcome.measure
    if done is None:
        if outcome.state == "measured":
            raise UsageError(f"{where}: measured, without a window")
        return
    if done.elapsed_ns < 1 or done.send_elapsed_ns < 0:
        raise UsageError(f"{where}: a window of {done.elapsed_ns} ns")
    for blob in _histograms(done):
        try:
            histogram.decode(blob)
        except histogram.HistogramError as error:
            raise UsageError(f"{where}: {error}") from error


def _histograms(done: Done) -> Iterator[str]:
    blobs = [done.send_lag, done.generator_lag, *(done.sections.response if done.sections else ())]
    blobs += [done.groups.time] if done.groups else []
    for operation in done.operations.values():
        blobs += [operation.response, operation.service]
    return (blob for blob in blobs if blob)


def _check_sizes(value: msgspec.Struct, where: str) -> None:
    names = [value.trial.cell] if isinstance(value, Outcome) else []
    for cell in names:
        if any(len(getattr(cell, field)) > _MAX_NAME for field in cell.__struct_fields__):
            raise UsageError(f"{where}: a name of more than {_MAX_NAME} characters")
    problem = _oversized(msgspec.to_builtins(value, str_keys=True))
    if problem:
        raise UsageError(f"{where}: {problem}")


def _oversized(value: object) -> str:
    """The first thing that is too large, in words; empty if there is none."""
    if isinstance(value, str):
        return "" if len(value) <= _MAX_TEXT else f"a text of {len(value):,} characters"
    if isinstance(value, int | float):
        sane = math.isfinite(value) and abs(value) <= _MAX_NUMBER
        return "" if sane else f"the number {value:.3g}"
    if isinstance(value, dict):
        entries = cast("dict[str, object]", value)
        return _too_many(len(entries)) or _first([*entries, *entries.values()])
    if isinstance(value, list | tuple):
        items = cast("list[object]", value)
        return _too_many(len(items)) or _first(items)
    return ""


def _too_many(count: int) -> str:
    return f"{count:,} entries" if count > _MAX_ENTRIES else ""


def _first(items: Sequence[object]) -> str:
    return next((found for found in map(_oversized, items) if found), "")


def named_programs(experiment: Experiment) -> list[str]:
    """The programs, files and other machines that an experiment names.

    A client's version is a program too: it is downloaded, or built from the folder that it names.
    A trace is a file of this machine, and its keys are sent to servers.
    """
    generators = [load.measure.generator for load in experiment.loads if load.measure]
    clients = [
        f"client {text}"
        for text in (*experiment.clients, *experiment.in_process, *generators)
        if _names_a_program(text) or parse_client_name(text).version
    ]
    servers = [f"server {text}" for text in experiment.servers if _names_a_program(text)]
    traces = [f"trace {workload.trace}" for workload in experiment.workloads if workload.trace]
    return [*clients, *servers, *traces]


def _names_a_program(text: str) -> bool:
    return any(mark in text for mark in _NAMES_A_PROGRAM)
