"""CPU time and send lag of the native client, compared with the null client and peers on PATH.

The null client is the floor: it writes requests that were made beforehand, reads into a scratch
buffer, and parses nothing. The native client plays with its defaults, then with an interval logged
each second, and over io_uring where the kernel allows it. Client and server have a CPU each. Every
program plays gets of 100-byte values. In each round they play one after the other, in random order.
CPU time is the scheduler's. A failed run is reported and left out.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from costs import intervals, memory
from counted import counted
from lags import lags
from metered import FailedError
from players import (
    KEYS,
    SHAPE,
    VARIANTS,
    Case,
    Run,
    engine,
    found_peers,
    has_uring,
    play_native,
    play_null,
    play_peer,
    play_variant,
    serving,
    store_keys,
)

from cachemark.host.process import binary_path

Player = Callable[[Case, set[int], float], Run | None]


def compare(
    cases: list[Case], cpus: set[int], peers: dict[str, Player], rounds: int, seconds: float
) -> None:
    """Print CPU per operation and its ratio to the floor of the same round."""
    players: dict[str, Player] = {"null client": play_null, "native": play_native}
    players |= {name: partial(play_variant, more) for name, more in VARIANTS.items()}
    if not has_uring(cases[0]):
        del players["native, uring"]
    players |= peers
    print(f"{'server':9}{'depth':>6}  {'client':18}{'ops/s':>10}{'CPU µs/op':>11}{'× floor':>9}")
    for case in cases:
        runs: dict[str, list[Run | None]] = {name: [] for name in players}
        for _ in range(rounds):
            for name in random.sample(list(players), len(players)):
                runs[name].append(_played(players[name], case, cpus, seconds))
        for name, of_name in runs.items():
            _row(case, name, of_name, runs["null client"])


def _peers(case: Case, cpus: set[int], folder: Path) -> dict[str, Player]:
    """The peers on PATH, each with its keys stored on the server of the case."""
    players: dict[str, Player] = {}
    for name, tool in found_peers().items():
        try:
            store_keys(tool, case, cpus, folder / name)
        except FailedError as error:
            print(f"left out: {error}", file=sys.stderr)
        else:
            players[name] = partial(play_peer, tool, folder / name)
    return players


def _played(player: Player, case: Case, cpus: set[int], seconds: float) -> Run | None:
    """One run; None if it failed, which is reported."""
    try:
        return player(case, cpus, seconds)
    except FailedError as error:
        print(f"left out: {error}", file=sys.stderr)
        return None


def _row(case: Case, name: str, runs: list[Run | None], floor: list[Run | None]) -> None:
    pairs = [(run, low) for run, low in zip(runs, floor, strict=True) if run and low and run.ops]
    if not pairs:
        return
    costs_us = [run.cpu_us / run.ops for run, _ in pairs]
    ratios = [run.cpu_us / run.ops / (low.cpu_us / low.ops) for run, low in pairs]
    rate = statistics.median(run.rate for run, _ in pairs)
    print(
        f"{case.server:9}{case.depth:6}  {name:18}{rate:10.0f}{statistics.median(costs_us):11.2f}"
        f"{statistics.median(ratios):9.2f}  {min(ratios):.2f} to {max(ratios):.2f}"
    )


def main() -> None:
    """Play all comparisons and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each window")
    parser.add_argument("--no-peers", action="store_true", help="only the engine's own clients")
    parser.add_argument(
        "--counted", action="store_true", help="only the cost of intervals, in instructions"
    )
    options = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))
    client_cpus, server_cpus = {cpus[0]}, {cpus[-1]}
    if client_cpus == server_cpus:
        print("client and server share a CPU: they disturb each other", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        tape = Path(folder) / "tape"
        engine_tape = ["tape", "write", "--out", str(tape), "--keys", "1", *SHAPE, "--ops", "1000"]
        subprocess.run([binary_path(), *engine_tape], check=True, capture_output=True)
        with (
            serving(server_cpus, "null-server", "--tape", str(tape)) as null,
            serving(server_cpus, "serve", "--listen", "127.0.0.1:0", "--threads", "1") as embedded,
        ):
            engine(
                client_cpus, "drive", "--server", embedded, "--keys", str(KEYS), *SHAPE, "--json",
                "--quiet", "--warmup", "0s", "--duration", "10ms",
            )  # fmt: skip
            cases = [
                Case(name, address, depth, keys)
                for name, address, keys in (("null", null, 1), ("embedded", embedded, KEYS))
                for depth in (1, 16)
            ]
            if not options.counted:
                peers = {} if options.no_peers else _peers(cases[2], client_cpus, Path(folder))
                compare(cases, client_cpus, peers, options.rounds, options.seconds)
                intervals(cases[1], client_cpus, options.rounds, options.seconds)
            counted(cases[2], client_cpus, options.seconds, Path(folder))
            if not options.counted:
                memory(cases[3], client_cpus, Path(folder) / "large")
                lags(cases[2], next(iter(client_cpus)), options.rounds, options.seconds)


if __name__ == "__main__":
    main()
