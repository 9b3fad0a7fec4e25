"""Load generators beside a measuring client: their counts, and a load that missed its rate."""

import msgspec
import pytest

from cachemark.analysis.rate_search import judge_play
from cachemark.analysis.statistics.figures import server_cpu_us, window_rate
from cachemark.analysis.verdict.open_loop import (
    LOAD_MISSED,
    generated_findings,
    generators_were_late,
    with_generated,
)
from cachemark.model import histogram
from cachemark.model.experiment import Load, Measure
from cachemark.model.outcome import Finding, Generators, Outcome, ServerUse
from cachemark.model.protocol import Done
from cachemark.model.search_steps import parse_objective
from tests.builders.histograms import from_values
from tests.builders.search_outcomes import at_rate, operations

P99 = parse_objective("p99<1ms", "search")
LOAD = Load(name="open", schedule="poisson", rate=5000, measure=Measure())
SECOND_NS = 1_000_000_000


def done(count: int, time_ns: int = 100_000, *, late_ns: int = 1000, unsent: int = 0) -> Done:
    """The work of generators in a second."""
    lag = histogram.encode(from_values([late_ns] * count))
    return Done(
        phase="measure",
        elapsed_ns=SECOND_NS,
        send_elapsed_ns=SECOND_NS,
        operations={"get": operations(count, time_ns)},
        generator_lag=lag,
        send_lag=lag,
        unsent=unsent,
    )


def loaded(generated: Done, *, findings: list[Finding] | None = None) -> Outcome:
    """A trial of a measuring client at 1,000 operations a second, each of them 200 µs."""
    made = at_rate("a", 1000, 200_000)
    return msgspec.structs.replace(
        made,
        load=LOAD,
        generators=Generators(client="native", measure=generated),
        verdict="OVERLOAD" if findings else "VALID",
        findings=findings or [],
        reasons=[found.text for found in findings or []],
    )


def test_counts_of_both_are_added() -> None:
    both = with_generated(done(1000), msgspec.structs.replace(done(5000), reconnects=2))
    assert both.operations["get"].attempts == 6000
    assert both.operations["get"].hits == 6000
    assert both.reconnects == 2
    assert with_generated(done(7), None) == done(7)


def test_a_load_that_missed_its_rate() -> None:
    assert generated_findings(done(5000), LOAD) == []
    (found,) = generated_findings(done(4000, unsent=1000), LOAD)
    assert (found.rule, found.weight) == (LOAD_MISSED, "OVERLOAD")
    assert found.text == "the load missed its rate: only 4000 of 5000 due operations were sent"


def test_generators_that_were_late_themselves_are_named() -> None:
    late = done(4000, 90_000_000, late_ns=80_000_000, unsent=1000)
    assert generators_were_late(late)
    (found,) = generated_findings(late, LOAD)
    assert found.text.endswith("the generators themselves were late")


def test_a_closed_load_has_no_rate_to_miss() -> None:
    closed = Load(name="closed", measure=Measure())
    assert generated_findings(done(10, unsent=10), closed) == []
    assert generated_findings(None, LOAD) == []


def test_rate_and_cpu_time_are_of_both_generators() -> None:
    use = ServerUse(
        cpu_ns=6_000_000, rss_before_bytes=1, rss_after_bytes=1, rss_peak_bytes=1, threads=1
    )
    trial = msgspec.structs.replace(loaded(done(5000)), server_use=use)
    assert window_rate(trial) == pytest.approx(6000)
    assert server_cpu_us(trial) == pytest.approx(1.0)


def test_a_search_takes_loads_rate_and_measuring_clients_times() -> None:
    play = judge_play(loaded(done(5000, 50_000_000)), P99, "auto")
    assert play.meets
    assert (play.rate, play.ops_per_s) == (5000, pytest.approx(5000))
    assert play.percentile_ns == pytest.approx(200_000, rel=0.01)


def test_a_search_blames_generators_that_were_late() -> None:
    missed = Finding(rule=LOAD_MISSED, weight="OVERLOAD", text="missed")
    late = loaded(done(4000, 90_000_000, late_ns=80_000_000), findings=[missed])
    assert judge_play(late, P99, "auto").spoiled_by == "generator"
    by_server = judge_play(loaded(done(4000), findings=[missed]), P99, "auto")
    assert by_server.misses_by == "OVERLOAD: missed"
    assert not by_server.spoiled_by
