"""Runs on disk, made of outcomes that were made by hand."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from cachemark.model.experiment import Experiment
from cachemark.model.outcome import Outcome
from cachemark.model.run_header import HostFacts, RunHeader
from cachemark.runs.storage.store import Run
from tests.builders.outcomes import at, experiment, header, measured, numbered


def trials(client: str, rate: int, blocks: int = 5, **changes: object) -> list[Outcome]:
    """A cell's valid trials at a rate, with fields of them changed."""
    found = [measured(client, block, rate, index=block) for block in range(blocks)]
    return [msgspec.structs.replace(trial, **changes) for trial in found]


def all_at(found: Sequence[Outcome], **names: str) -> list[Outcome]:
    """The trials, played in another cell."""
    return [at(outcome, **names) for outcome in found]


def made_header(name: str, day: int = 1, **changes: object) -> RunHeader:
    """The header of a run of a day in March; `host` and the like may be changed."""
    clients = ["a", "b"]
    made: Experiment = experiment(clients)
    base = header(made)
    given = {"id": name, "created_at": f"2026-03-{day:02}T10:00:00+00:00", **changes}
    return msgspec.structs.replace(base, **given)


def in_turns(number: int, *, second: bool) -> int:
    """The day of the run `number` of one of two sides that take turns, from 0."""
    return 1 + 2 * number + second


def other_host(**changes: object) -> HostFacts:
    """The host of the made runs, changed."""
    return msgspec.structs.replace(header(experiment(["a"])).host, **changes)


def kept(root: Path, head: RunHeader, outcomes: Sequence[Outcome]) -> Run:
    """A run in a folder of `root`, as the store keeps one."""
    folder = root / head.id
    folder.mkdir(parents=True)
    (folder / "run.json").write_bytes(msgspec.json.encode(head))
    run = Run(folder, head)
    with run:
        for outcome in numbered(outcomes):
            run.append([msgspec.structs.replace(outcome, run=head.id)])
    return run
