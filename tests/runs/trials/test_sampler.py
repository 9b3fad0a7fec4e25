"""Samples of a window: what they hold, and that nothing goes wrong where a server does."""

import contextlib
import os
import socket
import threading
from pathlib import Path

import msgspec
import pytest

from cachemark.analysis.verdict.own_times import counted_part
from cachemark.endpoints.servers import parse_spec, running
from cachemark.endpoints.servers.control_connection import Control
from cachemark.model.errors import TrialError
from cachemark.model.server_stats import ServerStats
from cachemark.runs.trials.sampler import Sampler, sampled_counters
from tests.builders.outcomes import measured
from tests.builders.small_experiments import read_outcomes
from tests.conftest import Cli
from tests.endpoints.servers.raw_requests import ask


def until(sampler: Sampler, count: int) -> None:
    while len(sampler.samples) < count:
        os.sched_yield()


def test_samples_hold_the_server_and_what_the_workers_told() -> None:
    with running(parse_spec("embedded:memory=16m,threads=2")) as server:
        with Sampler(server, period_s=0.01) as sampler:
            until(sampler, 1)
            ask(server.addresses[0], b"set k 0 0 1\r\nx\r\n")
            sampler.note_progress(7)
            until(sampler, len(sampler.samples) + 2)
        ended = len(sampler.samples)
        first, last = sampler.samples[0], sampler.samples[-1]
        assert server.stats()["cmd_get"] == "0"
        assert len(sampler.samples) == ended
    assert (first.ops, first.ops_unix_ns) == (None, None)
    assert last.ops == 7
    assert last.ops_unix_ns is not None
    assert first.unix_ns < last.ops_unix_ns < last.unix_ns
    assert (first.stats["cmd_set"], last.stats["cmd_set"]) == (0, 1)
    assert first.cpu_ns is not None
    assert last.cpu_ns is not None
    assert last.cpu_ns >= first.cpu_ns > 0
    assert last.rss_bytes
    assert last.threads


def test_counters_show_a_part_of_the_window() -> None:
    with running(parse_spec("embedded:memory=16m")) as server:
        before = server.stats()
        with Sampler(server) as sampler:
            ask(server.addresses[0], b"set k 0 0 1\r\nx\r\n")
            until(sampler, 1)
            ask(server.addresses[0], b"get k\r\n")
        after, counts = server.stats(), sampler.command_counts
    played = msgspec.structs.replace(
        measured("a", 0, 1), stats_before=dict(before), stats_after=dict(after)
    )
    begun, going_on = counted_part(played, counts) or (0, 0)
    assert 0 < begun < going_on
    assert all(one.took_ns > 0 for one in counts)


def test_without_a_server_only_the_rate_is_sampled() -> None:
    with running(parse_spec("none")) as nothing, Sampler(nothing, period_s=0.01) as sampler:
        sampler.note_progress(3)
        until(sampler, len(sampler.samples) + 2)
    last = sampler.samples[-1]
    assert (last.ops, last.cpu_ns, last.rss_bytes, last.stats) == (3, None, None, {})


def test_a_server_that_dies_ends_the_counters_not_the_samples() -> None:
    with running(parse_spec("embedded:memory=16m")) as server, Sampler(server, 0.01) as sampler:
        until(sampler, 1)
        assert server.pid is not None
        os.kill(server.pid, 9)
        while sampler.samples[-1].stats:
            os.sched_yield()
        until(sampler, len(sampler.samples) + 1)
    assert sampler.samples[-1].stats == {}
    assert sampler.samples[-1].rss_bytes is None


def test_a_window_shorter_than_a_period_has_no_sample() -> None:
    with running(parse_spec("none")) as nothing, Sampler(nothing) as sampler:
        pass
    assert sampler.samples == []


def test_a_late_answer_is_never_taken_for_the_next() -> None:
    late = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with listener.accept()[0] as connection:
                connection.recv(100)
                late.wait()
                connection.sendall(b"STAT cmd_get 1\r\nEND\r\n")
                # Until the other side has gone, which it may do with a reset: it read nothing.
                with contextlib.suppress(ConnectionResetError):
                    connection.recv(100)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        control = Control(f"127.0.0.1:{listener.getsockname()[1]}", 0.1)
        with pytest.raises(TrialError, match="timed out"):
            control.stats()
        late.set()
        with pytest.raises(TrialError, match="timed out"):
            control.stats()
        control.close()
        thread.join()


def test_only_numbers_are_kept() -> None:
    texts = {"cmd_get": "5", "bytes": "many", "version": "1.6", "evictions": "-1"}
    assert sampled_counters(ServerStats(texts)) == {"cmd_get": 5}


EXPERIMENT = """
name = "sampled"
question = "?"
clients = ["native"]
servers = ["embedded:memory=16m,threads=1"]
blocks = 1

[[workloads]]
name = "w"
mix = { get = 1 }
keys = { count = 100 }

[[loads]]
name = "l"
think = "1ms"

[timing]
warmup_ms = 0
measure_ms = 3500
"""


def test_the_outcome_of_a_trial_has_its_samples(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text(EXPERIMENT)
    assert cli("run", "e.toml").returncode == 0
    (outcome,) = read_outcomes(tmp_path)
    # A busy machine may change its pace in three seconds.
    assert outcome.verdict in ("VALID", "NON_STATIONARY"), outcome.reasons
    assert len(outcome.samples) >= 2
    assert outcome.measure is not None
    assert outcome.server_use is not None
    told = [sample.ops for sample in outcome.samples if sample.ops is not None]
    assert told == sorted(told)
    assert 0 < told[-1] <= outcome.measure.operations["get"].attempts
    reads = [sample.stats["cmd_get"] for sample in outcome.samples]
    assert int(outcome.stats_before["cmd_get"]) < reads[0] < reads[-1]
    assert reads[-1] <= int(outcome.stats_after["cmd_get"])
    assert all(sample.rss_bytes for sample in outcome.samples)
