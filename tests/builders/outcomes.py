"""Outcomes made by hand: seeded, so that reports of them never change."""

import random
from collections.abc import Iterable
from functools import cache

import msgspec

from cachemark.model import histogram
from cachemark.model.experiment import Experiment, Load, Timing, Workload
from cachemark.model.outcome import Cell, Outcome, ServerFacts, ServerUse, Trial
from cachemark.model.protocol import Done, Operation, Ready
from cachemark.model.run_header import HostFacts, RunHeader
from tests.builders.histograms import from_values

WORKLOAD = Workload(name="mixed", mix={"get": 9, "set": 1})
LOAD = Load(name="one")


def experiment(clients: list[str], blocks: int = 5) -> Experiment:
    """A small experiment against one server."""
    return Experiment(
        name="made",
        question="Which of the two is faster?",
        clients=clients,
        servers=["embedded"],
        workloads=[WORKLOAD],
        loads=[LOAD],
        blocks=blocks,
        margin_percent=2.0,
        design="trials",
    )


def header(made: Experiment) -> RunHeader:
    """The header of a run on a machine that never changes."""
    host = HostFacts(
        name="made",
        cpu_model="Made CPU",
        cpus=2,
        usable_cpus=[0, 1],
        hypervisor=False,
        kernel="6.0",
        system="Made OS",
        memory_bytes=8 * 2**30,
        governor="performance",
        clocksource="tsc",
        load_1min=0.1,
        python="3.11.0",
        cachemark="0.1.0",
        tools={},
    )
    return RunHeader(
        id="made",
        created_at="2026-01-02T03:04:05+00:00",
        cachemark="0.1.0",
        command="cachemark run made",
        experiment=made,
        host=host,
    )


def operation(count: int, typical_ns: int, draw: random.Random) -> Operation:
    """Gets, all hits, around a typical time."""
    values = [max(1, round(draw.lognormvariate(0, 0.3) * typical_ns)) for _ in range(count)]
    blob = histogram.encode(from_values(values))
    return Operation(
        attempts=count,
        ok=count,
        hits=count,
        keys=count,
        busy_ns=sum(values),
        response=blob,
        service=blob,
    )


def at(outcome: Outcome, **names: str) -> Outcome:
    """The same trial in another cell: of another client, server, workload or load."""
    cell = msgspec.structs.replace(outcome.trial.cell, **names)
    return msgspec.structs.replace(outcome, trial=msgspec.structs.replace(outcome.trial, cell=cell))


def numbered(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """The outcomes with the indexes of a plan."""
    return [
        msgspec.structs.replace(outcome, trial=msgspec.structs.replace(outcome.trial, index=index))
        for index, outcome in enumerate(outcomes)
    ]


def measured(client: str, block: int, rate: int, *, index: int = 0) -> Outcome:
    """A valid trial of one second at a rate; blocks differ as noisy hours do."""
    gets = _gets(client, block, rate)
    return Outcome(
        run="made",
        trial=Trial(
            index=index,
            block=block,
            cell=Cell(client=client, server="embedded", workload="mixed", load="one"),
            tape_seed=block,
        ),
        workload=WORKLOAD,
        load=LOAD,
        timing=Timing(),
        state="measured",
        verdict="VALID",
        worker=Ready(client=client, library=client, library_version="1.0"),
        server=ServerFacts(
            kind="embedded", version="0.1.0", command=["serve"], address="127.0.0.1:1"
        ),
        measure=Done(
            phase="measure",
            elapsed_ns=10**9,
            send_elapsed_ns=10**9,
            operations={"get": gets},
            cpu_user_ns=4 * 10**8,
            cpu_system_ns=10**8,
        ),
        server_use=ServerUse(
            cpu_ns=3 * 10**8,
            rss_before_bytes=2**20,
            rss_after_bytes=2**21,
            rss_peak_bytes=2**21,
            threads=3,
        ),
    )


@cache  # Hundreds of tests ask for the same few: drawing and encoding the values takes long.
def _gets(client: str, block: int, rate: int) -> Operation:
    """The operations of a valid trial, always the same."""
    draw = random.Random(f"{client}{block}")
    count = round(rate * (1 + 0.05 * block) * (1 + draw.uniform(-0.01, 0.01)))
    return operation(count, 10**9 // rate, draw)


def missing(of: Outcome) -> Outcome:
    """The same trial of a client that is not installed."""
    return msgspec.structs.replace(
        of,
        state="unsupported",
        verdict=None,
        measure=None,
        worker=None,
        samples=[],
        reason=f"{of.trial.cell.client}: not installed",
        remedy="make workers",
    )
