"""The rate of a trial: by which time its operations are divided, and which of them count."""

from typing import Any, get_args

import msgspec
import pytest

from cachemark.analysis.statistics import FIGURES, FigureName, summarise, window_rate
from cachemark.analysis.statistics.figures import counted_slices
from cachemark.model.experiment import Workload
from cachemark.model.outcome import Outcome
from cachemark.model.protocol import Operation
from cachemark.model.protocol_results import Timeline
from cachemark.model.rounds import Rounds, Slices
from tests.builders.outcomes import measured

MS = 1_000_000


def trial(workload: Workload, counts: list[int], operation: Operation) -> Outcome:
    """A trial with slices of 10 ms, of a window that was to take one second."""
    base = measured("native", 0, 1000)
    assert base.measure is not None
    timeline = Timeline(slice_ns=10 * MS, ok=counts, response_ns=[0] * len(counts))
    measure = msgspec.structs.replace(
        base.measure,
        elapsed_ns=10 * MS * len(counts),
        operations={"cas": operation},
        timeline=timeline,
    )
    return msgspec.structs.replace(base, workload=workload, measure=measure)


@pytest.mark.parametrize(
    "workload",
    [
        Workload(name="w", trace="day.csv", passes=1),
        Workload(name="w", trace="day.csv"),
        Workload(name="w", passes=2),
        Workload(name="w", ops=108),
        Workload(name="w", fill_percent=80),
    ],
    ids=["trace", "trace without passes", "passes", "ops", "fill"],
)
def test_what_ends_by_itself_is_divided_by_its_own_time(workload: Workload) -> None:
    """100 operations in the first 100 ms, and 8 until 8.5 s."""
    counts = [10] * 10 + [0] * 832 + [1] * 8
    done = trial(workload, counts, Operation(attempts=108, ok=108))
    assert window_rate(done) == pytest.approx(108 / 8.5)


def test_what_ends_by_time_is_divided_by_that_time() -> None:
    counts = [10] * 100 + [3]
    done = trial(Workload(name="w"), counts, Operation(attempts=1003, ok=1003))
    assert window_rate(done) == pytest.approx(1000)


@pytest.mark.parametrize("load", [{"rate": 15}, {"think": "60ms"}], ids=["rate", "think"])
def test_a_sparse_loop_is_divided_by_the_whole_window(load: dict[str, Any]) -> None:
    """The last of 15 operations ended after 0.87 s: then nothing was due."""
    counts = [0, 0, 1] * 15 + [0] * 42
    done = trial(Workload(name="w"), counts, Operation(attempts=15, ok=15))
    paced = msgspec.structs.replace(done, load=msgspec.structs.replace(done.load, **load))
    assert window_rate(paced) == pytest.approx(15)


def test_a_refused_cas_is_no_success_and_no_hit() -> None:
    operation = Operation(attempts=1000, ok=1000, hits=969, misses=31, not_stored=598)
    done = trial(Workload(name="w"), [10] * 100, operation)
    (summary,) = summarise([done])
    total = summary.total
    assert total is not None
    assert (total.ok, total.hits, total.misses, total.not_stored) == (402, 371, 31, 598)
    assert total.rate.value == pytest.approx(402)


def test_a_turns_own_cpu_time_is_none_of_the_clients() -> None:
    """An empty slice took 1 ms of CPU time, and 100 operations in two slices took 4."""
    done = trial(Workload(name="w"), [], Operation(attempts=80, ok=80, hits=80))
    slices = Slices(
        ops=[40, 40], errors=[0, 0], lead_in_ops=[10, 10],
        elapsed_ns=[1, 1], worker_cpu_ns=[2_000_000, 2_000_000],
    )  # fmt: skip
    rounds = Rounds(arm=0, arms=[], length_us=1, lead_in_us=0, turn_cpu_ns=1_000_000, slices=slices)
    played = msgspec.structs.replace(done, rounds=rounds)
    assert FIGURES["client-cpu"].of(played) == pytest.approx(20)
    unread = msgspec.structs.replace(slices, worker_cpu_ns=[-1, 2_000_000])
    played = msgspec.structs.replace(done, rounds=msgspec.structs.replace(rounds, slices=unread))
    assert FIGURES["client-cpu"].of(played) is None


def test_slices_have_successes_only() -> None:
    operation = Operation(attempts=100, ok=100, hits=100, not_stored=25)
    done = trial(Workload(name="w"), [], operation)
    slices = Slices(ops=[31, 40, 29], errors=[1, 0, 0])
    rounds = Rounds(arm=0, arms=[], length_us=1, lead_in_us=0, slices=slices)
    played = msgspec.structs.replace(done, rounds=rounds)
    own = counted_slices(played)
    assert own is not None
    assert sum(own.ops) == 75
    assert [a + b for a, b in zip(own.ops, own.errors, strict=True)] == [32, 40, 29]


def test_options_name_every_figure_in_order() -> None:
    assert get_args(FigureName) == tuple(FIGURES)
