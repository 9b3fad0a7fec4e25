"""Which suites can be played on a server, by what its probe found. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from cachemark.model.audit import Fitness, of_server
from cachemark.model.experiment import Experiment
from cachemark.model.plan import loads_of
from cachemark.model.probe_result import ProbeResult
from cachemark.runs.audit.fitness import skip_reason


class SuiteFitness(msgspec.Struct, frozen=True, kw_only=True):
    """How many workloads and loads of a suite `run` would play on a server, and why not all."""

    suite: str
    playable: int
    total: int
    reasons: list[str]


def suites_on(
    server: str, findings: Sequence[ProbeResult], suites: Iterable[Experiment]
) -> list[SuiteFitness]:
    """Each suite with what of it can be played on the server."""
    fitness = Fitness(server=server, findings=[of for of in findings if of.fit is not True])
    restrictions = of_server(fitness, "")
    results: list[SuiteFitness] = []
    for suite in suites:
        reasons = [
            skip_reason(restrictions, workload, load, "" if load.wire == "own" else load.wire)
            for workload in suite.workloads
            for load in loads_of(suite, workload)
        ]
        results.append(
            SuiteFitness(
                suite=suite.name,
                playable=reasons.count(""),
                total=len(reasons),
                reasons=list(dict.fromkeys(filter(None, reasons))),
            )
        )
    return results
