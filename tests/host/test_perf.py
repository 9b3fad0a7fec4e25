"""Samples by perf: its stacks are folded; why there are none is said."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cachemark.host import perf
from cachemark.model.counts import parse_stacks

SAMPLE = """
\tffffffff8200ec5b tcp_sendmsg ([kernel.kallsyms])
\tffffffff81000130 entry_SYSCALL_64_after_hwframe ([kernel.kallsyms])
\t          1069fb __send (/usr/lib/x86_64-linux-gnu/libc.so.6)
\t           14589 [unknown] (/usr/lib/x86_64-linux-gnu/libmemcached.so.11.0.0)
\t           12319 memcached_get (/usr/lib/x86_64-linux-gnu/libmemcached.so.11.0.0)
\t            e4e2 [unknown] (/usr/lib/php/20220829/memcached.so)
\t            dc96 [unknown] (/usr/lib/php/20220829/memcached.so)
\tffffffffffffffff [unknown] ([unknown])

\t            b11f call (/some/where/workers/c/worker)
\t            528b lane_play_window (/some/where/workers/c/worker)
\t           891f4 start_thread (/usr/lib/x86_64-linux-gnu/libc.so.6)

\t           1b379b memcache::client::Client::get (/some/where/workers/rust/target/release/worker)
\t           1b379b <worker::lane::Lane as core::ops::Fn(a; b)>::call (/some/where/release/worker)
\t           1b379b __rust_begin_short_backtrace (/some/where/workers/rust/target/release/worker)
"""
STACKS = [
    "[unknown] (memcached.so);memcached_get (libmemcached.so.11.0.0);__send (libc.so.6);"
    "entry_SYSCALL_64_after_hwframe ([kernel]);tcp_sendmsg ([kernel])",
    "start_thread (libc.so.6);lane_play_window (cachemark/lane_play_window);call (cachemark/call)",
    "__rust_begin_short_backtrace (worker);<worker::lane::Lane as core::ops::Fn(a, b)>::call "
    "(cachemark/<worker::lane::Lane as core::ops::Fn(a, b)>::call);"
    "memcache::client::Client::get (worker)",
]
# It calculates after a line on its stdin.
BUSY = "import sys; sys.stdin.readline(); sum(range(20_000_000))"


def test_stacks_are_folded_from_the_outermost_function() -> None:
    assert perf.folded(f"{SAMPLE}\n{SAMPLE}") == dict.fromkeys(STACKS, 2)
    text = "".join(f"{stack} 1\n" for stack in STACKS)
    assert parse_stacks(text)[1] == dict.fromkeys(STACKS, 1)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("", "no perf: apt-get install linux-perf"),
        ("echo Access is limited >&2; exit 255", "perf: Access is limited (it may sample as root"),
    ],
)
def test_a_profile_that_cannot_be_taken_says_why(
    program: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if program:
        (tmp_path / "perf").write_text(f"#!/bin/sh\n{program}\n")
        (tmp_path / "perf").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    profile = tmp_path / "profile"
    with perf.sampled(os.getpid(), profile):
        pass
    sampler, stacks, failure = parse_stacks(profile.read_text())
    assert (sampler, stacks) == ("", {})
    assert failure.startswith(reason)


def test_a_busy_process_is_sampled(tmp_path: Path) -> None:
    profile = tmp_path / "profile"
    with (
        subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE) as busy,
        perf.sampled(busy.pid, profile),
    ):
        busy.communicate(b"\n")
    sampler, stacks, failure = parse_stacks(profile.read_text())
    if failure:
        pytest.skip(f"perf cannot sample here: {failure}")
    assert sampler.startswith("perf")
    assert any("(python" in stack for stack in stacks)
