"""Outcomes of a search for the highest rate, made by hand."""

import msgspec

from cachemark.model import histogram
from cachemark.model.experiment import Experiment, Load
from cachemark.model.outcome import Cell, Finding, Outcome, Verdict
from cachemark.model.protocol import Operation
from cachemark.model.search_steps import closed_step, rate_step
from tests.builders.histograms import from_values
from tests.builders.outcomes import experiment, measured

LOAD = Load(name="open", schedule="poisson")


def search_experiment(text: str = "p99<1ms", blocks: int = 1) -> Experiment:
    """Two clients against one server, and an objective."""
    made = experiment(["a", "b"], blocks)
    return msgspec.structs.replace(made, search=text, loads=[LOAD])


def closed(client: str, rate: int, block: int = 0, *, load: Load = LOAD) -> Outcome:
    """The first step of a search: a closed loop with its operations in a second."""
    return _step(client, block, closed_step(load), operations(rate, 10**5))


def at_rate(
    client: str,
    rate: float,
    time_ns: int,
    block: int = 0,
    *,
    late_ns: int = 1000,
    share: float = 1.0,
    verdict: Verdict = "VALID",
    rule: str = "",
    load: Load = LOAD,
) -> Outcome:
    """A step at a rate: this share of operations took `time_ns`, and the client was so late."""
    gets = operations(max(1, round(rate)), time_ns, share)
    made = _step(client, block, rate_step(load, rate), gets)
    assert made.measure is not None
    lag = histogram.encode(from_values([late_ns] * 1000))
    measure = msgspec.structs.replace(made.measure, generator_lag=lag, send_lag=lag)
    findings = [Finding(rule=rule, weight="INVALID", text=rule)] if rule else []
    return msgspec.structs.replace(
        made, measure=measure, verdict=verdict, findings=findings, reasons=[rule] if rule else []
    )


def operations(count: int, time_ns: int, share: float = 1.0) -> Operation:
    """Gets: a share of them took this time, the others a tenth of it."""
    slow = round(share * count)
    values = [time_ns] * slow + [time_ns // 10] * (count - slow)
    blob = histogram.encode(from_values(values))
    return Operation(attempts=count, ok=count, hits=count, keys=count, response=blob, service=blob)


def _step(client: str, block: int, load: Load, gets: Operation) -> Outcome:
    made = measured(client, block, 100)
    assert made.measure is not None
    cell = Cell(client=client, server="embedded", workload="mixed", load=load.name)
    return msgspec.structs.replace(
        made,
        load=load,
        trial=msgspec.structs.replace(made.trial, cell=cell),
        measure=msgspec.structs.replace(made.measure, operations={"get": gets}),
    )
