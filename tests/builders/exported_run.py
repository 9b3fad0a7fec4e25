"""A run for the exports: two loads, two kinds, failures, and what is missing here and there."""

import random

import msgspec

from cachemark.model import histogram
from cachemark.model.experiment import Experiment, Load, Workload
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.protocol import Done, Operation
from cachemark.model.protocol_results import Groups
from cachemark.report.series import ExportedRun, build_exported_run
from tests.builders.histograms import from_values
from tests.builders.outcomes import experiment, header, measured, missing, numbered

WORKLOAD = Workload(name="session", sequence=["set@0", "get@0", "get@0"])
ONE, FOUR = Load(name="one"), Load(name="four", threads=4)
BLOCKS = 4


def made() -> Experiment:
    """Its experiment."""
    grid = experiment(["python/fast", "python/mute", "python/gone", "native?a=b c"], BLOCKS)
    return msgspec.structs.replace(grid, workloads=[WORKLOAD], loads=[ONE, FOUR])


def operation(kind: str, draw: random.Random) -> Operation:
    """Some hundred operations; times on a coarse grid, so that histograms stay short."""
    count = {"get": 400, "set": 200}[kind]
    values = [20_000 * (2 + min(40, int(draw.expovariate(0.4)))) for _ in range(count)]
    blob = histogram.encode(from_values(values))
    read = kind == "get"
    return Operation(
        attempts=count + 2,
        ok=count,
        hits=count - 10 if read else 0,
        misses=10 if read else 0,
        errors={"timeout": 2},
        keys=count,
        busy_ns=sum(values),
        response=blob,
        service=blob,
    )


def groups(draw: random.Random) -> Groups:
    """The times of most passes of the sequence."""
    values = [20_000 * (8 + min(60, int(draw.expovariate(0.2)))) for _ in range(190)]
    time = histogram.encode(from_values(values))
    return Groups(length=3, ok=len(values), time=time)


def trial(client: str, load: Load, block: int) -> Outcome:
    """A valid trial; the mute client tells no CPU, and runs against a server that is not ours."""
    draw = random.Random(f"{client}{load.name}{block}")
    base = measured(client, block, 100)
    mute = client == "python/mute"
    return msgspec.structs.replace(
        base,
        trial=msgspec.structs.replace(
            base.trial,
            index=block,
            cell=Cell(client=client, server="embedded", workload="session", load=load.name),
        ),
        workload=WORKLOAD,
        load=load,
        measure_started_at=f"2026-01-02T03:0{block}:05.250+00:00",
        server_use=None if mute else base.server_use,
        measure=Done(
            phase="measure",
            elapsed_ns=10**9 + 10**7 * draw.randrange(10),
            send_elapsed_ns=10**9,
            operations={kind: operation(kind, draw) for kind in ("get", "set")},
            groups=None if mute else groups(draw),
            cpu_user_ns=0 if mute else 4 * 10**8,
            cpu_system_ns=0 if mute else 10**8 + 10**6 * block,
        ),
    )


def outcomes() -> list[Outcome]:
    """All trials: one of them INVALID, one cell without any that counts, one client missing."""
    found = [
        trial(client, load, block)
        for client in ("python/fast", "python/mute", "native?a=b c")
        for load in (ONE, FOUR)
        for block in range(BLOCKS)
        if (client, load) != ("native?a=b c", FOUR)
    ]
    found[1] = msgspec.structs.replace(found[1], verdict="INVALID", reasons=["it lied"])
    bad = [trial("native?a=b c", FOUR, block) for block in range(BLOCKS)]
    found += [msgspec.structs.replace(o, verdict="INVALID", reasons=["it\nlied"]) for o in bad]
    gone = missing(trial("python/gone", ONE, 0))
    return numbered([*found, gone])


def run() -> ExportedRun:
    """The run as an export sees it."""
    return build_exported_run(header(made()), outcomes())
