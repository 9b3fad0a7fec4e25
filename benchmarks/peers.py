"""`make peers`: the native client beside other load generators, as tables in Markdown.

A table for each server, memcached and the embedded one, both with one thread. Every program
plays gets of 100-byte values on 50 connections. In each round they all play once, in random order;
a ratio is that of two windows of one round, and the table has the median of the ratios with its
interval of 95 %. Client and server have a CPU each. CPU time, operations and memory are read from
outside (metered.py). The last table has the error of each tool's percentiles against a scripted
server: the cases of `cachemark fidelity`. A peer that is not on PATH is a row that says so.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from metered import SPARE_S, FailedError, Metered, metered
from players import (
    CONNECTIONS,
    KEYS,
    SHAPE,
    Case,
    engine,
    found_peers,
    has_uring,
    peer_job,
    store_keys,
)

from cachemark.analysis.statistics import median_interval
from cachemark.checks.fidelity import Case as FidelityCase
from cachemark.checks.fidelity import FidelityResult, cases, findings, milliseconds, percentile_name
from cachemark.checks.fidelity.tools import TOOLS, tool_results
from cachemark.endpoints.clients import NATIVE, parse_client, registry
from cachemark.endpoints.servers.registry import missing, parse_spec, running
from cachemark.host.process import binary_path

DEPTHS = (1, 16)
FLOOR = "null client"
FIDELITY_CASES = (
    "constant", "bimodal", "stall, closed", "constant, open", "stall, open", "M/D/1",
)  # fmt: skip
TRIES = 3
# In an open loop a tool that waits for each reply sends late; with this depth it never has to.
OPEN_DEPTH = 64

Command = Callable[[Case, float], list[str]]


class Player(NamedTuple):
    """A program, how it plays a case, what it checks of a reply, and whether it can pipeline."""

    name: str
    command: Command
    verifies: str
    pipelines: bool = True


Runs = dict[tuple[str, int], list[Metered | None]]


def own_players(case: Case) -> list[Player]:
    """The engine's own clients."""
    verified = "every value, byte for byte"
    players = [
        Player(FLOOR, partial(_engine, "null-client", ()), "nothing: the floor"),
        Player(NATIVE, partial(_drive, ()), verified),
    ]
    if has_uring(case):
        players.append(Player(f"{NATIVE}, io_uring", partial(_drive, ("--io", "uring")), verified))
    return players


def _drive(more: tuple[str, ...], case: Case, seconds: float) -> list[str]:
    return _engine("drive", ("--no-prefill", "--quiet", *more), case, seconds)


def _engine(verb: str, more: tuple[str, ...], case: Case, seconds: float) -> list[str]:
    work = ["--server", case.address, "--keys", str(case.keys), *SHAPE]
    load = ["--connections", str(CONNECTIONS), "--depth", str(case.depth)]
    times = ["--warmup", "0s", "--duration", f"{round((seconds + SPARE_S) * 1000)}ms"]
    return [binary_path(), verb, *work, *load, *times, *more]


def peer_players(case: Case, cpus: set[int], folder: Path) -> Iterator[Player]:
    """The peers on PATH, each with its keys stored."""
    for name, tool in found_peers().items():
        try:
            store_keys(tool, case, cpus, folder / name)
        except FailedError as error:
            print(f"left out: {error}", file=sys.stderr)
            continue

        def command(case: Case, seconds: float, name: str = name) -> list[str]:
            tool = TOOLS[name]
            return tool.command(peer_job(tool, case, folder / name, seconds))

        yield Player(name, command, tool.verifies, tool.pipelines)


def play(players: list[Player], case: Case, cpus: set[int], rounds: int, seconds: float) -> Runs:
    """Play all rounds of a server at every depth."""
    runs: Runs = {(player.name, depth): [] for player in players for depth in DEPTHS}
    turns = _turns(players)
    for number in range(rounds):
        for player, depth in random.sample(turns, len(turns)):
            told = f"{case.server}, round {number + 1}/{rounds}: {player.name}, depth {depth}"
            played = None
            try:
                command = player.command(case._replace(depth=depth), seconds)
                played = metered(command, cpus, case.address, seconds)
                print(f"{told}: {played.cost_us:.2f} µs", file=sys.stderr)
            except FailedError as error:
                print(f"{told}: left out: {error}", file=sys.stderr)
            runs[player.name, depth].append(played)
    return runs


def _turns(players: list[Player]) -> list[tuple[Player, int]]:
    return [(one, depth) for one in players for depth in DEPTHS if depth == 1 or one.pipelines]


def print_costs(server: str, players: list[Player], runs: Runs) -> None:
    """Print the table of a server: a row for each player, and for each peer that is missing."""
    print(f"\n### {server}\n")
    columns = [
        f"depth {depth}: {text}" for depth in DEPTHS for text in ("CPU µs/op", "native ÷ this")
    ]
    columns += ["highest rate, ops/s", "memory, MB", "verified"]
    print(f"| client | {' | '.join(columns)} |\n|{'---|' * (len(columns) + 1)}")
    for player in players:
        cells = [cell for depth in DEPTHS for cell in _cost_cells(player.name, depth, runs)]
        done = [run for depth in DEPTHS for run in runs[player.name, depth] if run]
        rate = f"{max(run.rate for run in done):,.0f}" if done else "-"
        memory = f"{max(run.peak_bytes for run in done) / 1e6:.0f}" if done else "-"
        print(f"| {player.name} | {' | '.join([*cells, rate, memory, player.verifies])} |")
    for name, why in _absent({player.name for player in players}):
        print(f"| {name} | {why} |{' |' * (len(columns) - 1)}")
    sys.stdout.flush()


def _cost_cells(name: str, depth: int, runs: Runs) -> tuple[str, str]:
    """CPU time per operation, and the native client's as a multiple of it."""
    done = [run for run in runs[name, depth] if run]
    if not done:
        return "-", "-"
    cost = f"{statistics.median(run.cost_us for run in done):.2f}"
    pairs = zip(runs[NATIVE, depth], runs[name, depth], strict=True)
    ratios = [own.cost_us / run.cost_us for own, run in pairs if own and run]
    found = None if name == NATIVE else median_interval(ratios)
    if found is None:
        return cost, "-"
    middle, low, high = found
    interval = f" ({low:.2f} to {high:.2f})" if high < float("inf") else ""
    return cost, f"{middle:.2f}{interval}"


def _absent(there: set[str]) -> Iterator[tuple[str, str]]:
    for name, tool in TOOLS.items():
        if name not in there:
            why = "played no case" if tool.program() else f"not on PATH: {tool.home}"
            yield name, why


def print_fidelity(names: tuple[str, ...]) -> None:
    """Print the error of each tool's percentiles; a row as soon as a tool has played."""
    wanted = [cases()[name] for name in names]
    print("\n### Error of the percentiles, in ms\n")
    print(
        f"| client | {' | '.join(_head(case) for case in wanted)} |\n|{'---|' * (len(wanted) + 1)}"
    )
    native = parse_client(NATIVE, registry(binary_path()))
    _print_errors(NATIVE, list(findings(native, wanted, TRIES)))
    for name, tool in TOOLS.items():
        if not tool.program() or tool.silent:
            why = tool.silent or f"not on PATH: {tool.home}"
            print(f"| {name} | {why} |{' |' * (len(wanted) - 1)}", flush=True)
            continue
        _print_errors(name, list(tool_results(tool, wanted, TRIES)))
        if tool.pipelines:
            opened = [case for case in wanted if not case.load.closed]
            found = {one.case: one for one in tool_results(tool, opened, TRIES, OPEN_DEPTH)}
            label = f"{name}, depth {OPEN_DEPTH}"
            _print_errors(label, [found.get(case.name) for case in wanted])


def _head(case: FidelityCase) -> str:
    return f"{case.name}: {', '.join(percentile_name(percent) for percent in case.answer_ms)}"


def _print_errors(name: str, found: Sequence[FidelityResult | None]) -> None:
    print(f"| {name} | {' | '.join(map(_errors, found))} |", flush=True)


def _errors(found: FidelityResult | None) -> str:
    """The errors of a case, each with its percentile; or why there are none."""
    if found is None:
        return "-"
    if not found.lines:
        return found.why or found.state
    errors = (
        f"{percentile_name(line.percent)} {'+' if line.error_ns > 0 else ''}"
        f"{milliseconds(line.error_ns)}"
        for line in found.lines
    )
    return f"{found.state}: {', '.join(errors)}"


def compare(server: str, cpus: tuple[str, str], rounds: int, seconds: float) -> None:
    """Play all clients against a server, and print the server's table."""
    client_cpu, server_cpu = cpus
    pinned_to = {int(client_cpu)}
    spec = parse_spec(server)
    if absent := missing(spec):
        print(f"\n### {server}\n\n{absent.reason}: {absent.remedy}", flush=True)
        return
    with tempfile.TemporaryDirectory() as name, running(spec, cpus=server_cpu) as target:
        case = Case(spec.kind, target.addresses[0], 1, KEYS)
        engine(pinned_to, *_short(case))
        players = [*own_players(case), *peer_players(case, pinned_to, Path(name))]
        runs = play(players, case, pinned_to, rounds, seconds)
        # Nobody has changed the values, so the native client has compared whole ones.
        engine(pinned_to, *_short(case), "--no-prefill")
        print_costs(f"{spec.kind} {target.facts.version}", players, runs)


def _short(case: Case) -> list[str]:
    """Store the keys of the engine's own clients, and read some of them."""
    work = ["drive", "--server", case.address, "--keys", str(KEYS), *SHAPE, "--json", "--quiet"]
    return [*work, "--warmup", "0s", "--duration", "10ms"]


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each window")
    parser.add_argument(
        "--server", nargs="*", default=["memcached:threads=1", "embedded:threads=1"],
        help="as experiments write it; memcached:threads=1,binary=PATH is another memcached",
    )  # fmt: skip
    parser.add_argument("--no-fidelity", action="store_true", help="leave the last table out")
    parser.add_argument("--case", nargs="*", default=FIDELITY_CASES, help="cases of that table")
    options = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) == 1:
        print("client and server share a CPU: they disturb each other", file=sys.stderr)
    for server in options.server:
        compare(server, (str(cpus[0]), str(cpus[-1])), options.rounds, options.seconds)
    if not options.no_fidelity:
        print_fidelity(tuple(options.case))


if __name__ == "__main__":
    main()
