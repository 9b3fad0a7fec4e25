"""`make peers`: the native client beside other load generators, as tables in Markdown.

A table for each server, memcached and the embedded one, both with one thread. Every program
plays gets of 100-byte values on 50 connections. In each round they all play once, in random order;
a ratio is that of two windows of one round, and the table has the median of the ratios with its
interval of 95 %. Client and server have a CPU each. CPU time, operations and memory are read from
outside (metered.py). Then follow a table of the clients' memory, with many connections and with
many keys, and the error of each tool's percentiles against a scripted server: the cases of
`cachemark fidelity`. A peer that is not on PATH is a row that says so.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from metered import FailedError, Metered, metered
from peer_memory import print_memory
from peer_players import Player, absent_peers, own_players, stored_players
from players import KEYS, SHAPE, Case, engine

from cachemark.analysis.statistics import median_interval
from cachemark.checks.fidelity import Case as FidelityCase
from cachemark.checks.fidelity import FidelityResult, cases, findings, milliseconds, percentile_name
from cachemark.checks.fidelity.tools import TOOLS, tool_results
from cachemark.endpoints.clients import parse_client, registry
from cachemark.endpoints.servers.registry import missing, parse_spec, running
from cachemark.host.process import binary_path
from cachemark.model.client_name import NATIVE

DEPTHS = (1, 16)
FIDELITY_CASES = (
    "constant", "bimodal", "stall, closed", "constant, open", "stall, open", "M/D/1",
)  # fmt: skip
TRIES = 3
# In an open loop a tool that waits for each reply sends late; with this depth it never has to.
OPEN_DEPTH = 64

Runs = dict[tuple[str, int], list[Metered | None]]


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
    for name, why in absent_peers({player.name for player in players}):
        print(f"| {name} | {why} |{' |' * (len(columns) - 1)}")
    sys.stdout.flush()


def _cost_cells(name: str, depth: int, runs: Runs) -> tuple[str, str]:
    """CPU time per operation, and the native client's as a multiple of it."""
    done = [run for run in runs[name, depth] if run]
    if not done:
        return "-", "-"
    cost = f"{statistics.median(run.cost_us for run in done):.2f}"
    return cost, _ratio_cell(name, depth, runs)


def _ratio_cell(name: str, depth: int, runs: Runs) -> str:
    """The median of the native client's cost ÷ this one's in the same round, with its interval."""
    if name == NATIVE:
        return "1"
    pairs = zip(runs[NATIVE, depth], runs.get((name, depth), []), strict=False)
    found = median_interval([own.cost_us / run.cost_us for own, run in pairs if own and run])
    if found is None:
        return "-"
    middle, low, high = found
    interval = f" ({low:.2f} to {high:.2f})" if high < float("inf") else ""
    return f"{middle:.2f}{interval}"


def print_ratios(servers: list[tuple[str, Runs]]) -> None:
    """Print the ratios of all servers as one table, with the peak memory of all runs."""
    heads = [f"{server}, depth {depth}" for server, _ in servers for depth in DEPTHS]
    print("\n### The native client's CPU time of an operation, as a multiple of each client's\n")
    print(f"| native ÷ this | {' | '.join(heads)} | memory, MB |\n|{'---|' * (len(heads) + 2)}")
    for name in dict.fromkeys(name for _, runs in servers for name, _ in runs):
        cells = [_ratio_cell(name, depth, runs) for _, runs in servers for depth in DEPTHS]
        own = [of for _, runs in servers for (who, _), of in runs.items() if who == name]
        peaks = [run.peak_bytes for of in own for run in of if run]
        memory = f"{max(peaks) / 1e6:.0f}" if peaks else "-"
        print(f"| {name} | {' | '.join([*cells, memory])} |")
    sys.stdout.flush()


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


def compare(
    server: str, cpus: tuple[str, str], rounds: int, seconds: float
) -> tuple[str, Runs] | None:
    """Play all clients against a server, and print the server's table.

    Returns the server's name and the runs; None if it is not on this machine.
    """
    client_cpu, server_cpu = cpus
    pinned_to = {int(client_cpu)}
    spec = parse_spec(server)
    if absent := missing(spec):
        print(f"\n### {server}\n\n{absent.reason}: {absent.remedy}", flush=True)
        return None
    with tempfile.TemporaryDirectory() as name, running(spec, cpus=server_cpu) as target:
        case = Case(spec.kind, target.addresses[0], 1, KEYS)
        engine(pinned_to, *_short(case))
        players = [*own_players(case), *stored_players(case, pinned_to, Path(name))]
        runs = play(players, case, pinned_to, rounds, seconds)
        # No program has changed the values, so the native client has compared whole ones.
        engine(pinned_to, *_short(case), "--no-prefill")
        told = f"{spec.kind} {target.facts.version}"
        print_costs(told, players, runs)
    return told, runs


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
    parser.add_argument("--no-memory", action="store_true", help="leave the table of memory out")
    parser.add_argument("--no-fidelity", action="store_true", help="leave the last table out")
    parser.add_argument("--case", nargs="*", default=FIDELITY_CASES, help="cases of that table")
    options = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) == 1:
        print("client and server share a CPU: they disturb each other", file=sys.stderr)
    pinned_to = str(cpus[0]), str(cpus[-1])
    played = [compare(each, pinned_to, options.rounds, options.seconds) for each in options.server]
    if servers := [each for each in played if each]:
        print_ratios(servers)
    if not options.no_memory:
        print_memory(pinned_to)
    if not options.no_fidelity:
        print_fidelity(tuple(options.case))


if __name__ == "__main__":
    main()
