"""The prefill: a busy machine has a second round, a server that refuses has none."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cachemark.model.errors import TrialError
from cachemark.model.protocol import Done, Operation
from cachemark.model.server_stats import ServerStats
from cachemark.runs.trials.callers import too_many_connections
from cachemark.runs.trials.prefill import run_prefill
from tests.builders.small_experiments import read_outcomes
from tests.cli.in_process import Inside


def done(ok: int, **errors: int) -> Done:
    attempts = ok + sum(errors.values())
    sets = Operation(attempts=attempts, ok=ok, errors=errors)
    return Done(phase="prefill", elapsed_ns=1, send_elapsed_ns=1, operations={"set": sets})


def rounds(*answers: Done) -> Iterator[Done]:
    return iter(answers)


def test_what_was_stored_is_not_stored_again() -> None:
    played = rounds(done(10), done(9))
    assert run_prefill(lambda: next(played)) == done(10)
    assert next(played) == done(9)


def test_a_busy_machine_has_a_second_round() -> None:
    played = rounds(done(8, timeout=2), done(10))
    assert run_prefill(lambda: next(played)) == done(10)


def test_two_rounds_are_enough() -> None:
    played = rounds(done(8, timeout=2), done(9, timeout=1), done(10))
    with pytest.raises(TrialError, match="1 × timeout") as caught:
        run_prefill(lambda: next(played))
    assert "timing.timeout_ms" in caught.value.remedy


@pytest.mark.parametrize("errors", [{"server": 2}, {"server": 1, "timeout": 1}])
def test_what_a_server_refuses_it_is_not_asked_again(errors: dict[str, int]) -> None:
    played = rounds(done(8, **errors), done(10))
    with pytest.raises(TrialError, match=r"1 × timeout|2 × server") as caught:
        run_prefill(lambda: next(played))
    assert "item limit" in caught.value.remedy


def test_an_add_that_found_its_key_is_no_error() -> None:
    sets = Operation(attempts=5, ok=3)
    short = Done(phase="prefill", elapsed_ns=1, send_elapsed_ns=1, operations={"set": sets})
    with pytest.raises(TrialError, match="2 × not stored"):
        run_prefill(lambda: short)


@pytest.mark.parametrize(("connections", "fits"), [(38, True), (39, False)])
def test_the_connections_that_are_there_count(connections: int, *, fits: bool) -> None:
    stats = ServerStats({"max_connections": "40", "curr_connections": "2"})
    assert bool(too_many_connections(connections, [ServerStats(), stats])) != fits


def test_what_a_server_does_not_tell_refuses_nothing() -> None:
    assert not too_many_connections(10**6, [ServerStats({"curr_connections": "2"})])


@pytest.mark.parametrize("client", ["native", "python/pymemcache"])
def test_a_run_says_how_many_the_server_takes(inside: Inside, client: str) -> None:
    words = ["--client", client, "--server", "memcached:connections=40,threads=1"]
    words += ["--threads", "100", "--blocks", "1", "--set", "design=trials"]
    told = inside("run", *words)
    assert "100 connections at once, and the server takes 40" in " ".join(told.stdout.split())
    assert "memcached:connections=2000" in " ".join(told.stdout.split())


def test_a_prefill_and_a_warm_up_are_kept_without_times(inside: Inside, tmp_path: Path) -> None:
    words = "run quick --client native --server embedded --blocks 1 --set design=trials"
    ended = inside(*words.split(), "--measure-ms", "100", "--set", "timing.warmup_ms=50")
    assert ended.returncode == 0, ended.stderr
    (outcome,) = read_outcomes(tmp_path)
    assert outcome.measure is not None
    assert outcome.measure.sections
    assert outcome.measure.operations["get"].response
    for done, kind in ((outcome.prefill, "set"), (outcome.warmup, "get")):
        assert done is not None
        assert done.operations[kind].ok > 0
        assert done.operations[kind].response is done.operations[kind].service is None
        assert done.sections is done.timeline is done.groups is None
