"""The peak memory of each client: with many connections, and with many keys."""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from metered import FailedError, peak_bytes
from peer_players import Player, absent_peers, own_players, peer_player
from players import CONNECTIONS, KEYS, SHAPE, Case, engine, found_peers, serving

MANY_CONNECTIONS, MANY_KEYS = 10_000, 1_000_000
SHAPES = ((CONNECTIONS, KEYS), (MANY_CONNECTIONS, KEYS), (CONNECTIONS, MANY_KEYS))
# The client's memory does not depend on the server, so it is the embedded one, with room for all.
SERVER = (
    "serve", "--listen", "127.0.0.1:0", "--threads", "1",
    "--memory", "1g", "--max-connections", str(MANY_CONNECTIONS + 100),
)  # fmt: skip


class Tape(NamedTuple):
    """The tape of the native client's work: its size, and how long the engine takes to make it."""

    keys: int
    size_bytes: int
    elapsed_s: float


def print_memory(cpus: tuple[str, str]) -> None:
    """Play each client in each shape once, and print the table: a row as soon as one has played."""
    client_cpus, server_cpus = ({int(cpu)} for cpu in cpus)
    # Client and server inherit it; each has one descriptor for a connection.
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    print("\n### Memory at most, in MB\n")
    heads = [f"{connections:,} connections, {keys:,} keys" for connections, keys in SHAPES]
    print(f"| client | {' | '.join(heads)} |\n|{'---|' * (len(heads) + 1)}", flush=True)
    with tempfile.TemporaryDirectory() as name, serving(server_cpus, *SERVER) as address:
        case = Case("embedded", address, 1, KEYS)
        for keys in (KEYS, MANY_KEYS):
            _store(case._replace(keys=keys), client_cpus)
        players = [*own_players(case), *(peer_player(each, Path(name)) for each in found_peers())]
        notes: list[str] = []
        for player in players:
            cells = [_cell(player, case, shape, client_cpus, notes) for shape in SHAPES]
            print(f"| {player.name} | {' | '.join(cells)} |", flush=True)
        for absent, why in absent_peers({player.name for player in players}):
            print(f"| {absent} | {why} |{' |' * (len(heads) - 1)}", flush=True)
        tapes = [_tape(keys, client_cpus, Path(name)) for keys in (KEYS, MANY_KEYS)]
    told = (
        f"{t.size_bytes / 1e6:.1f} MB with {t.keys:,} keys ({t.elapsed_s:.2f} s)" for t in tapes
    )
    notes.append(f"The native client's tape is a part of its memory: {', '.join(told)}.")
    print("".join(f"\n- {note}" for note in notes), flush=True)


def _store(case: Case, cpus: set[int]) -> None:
    """Store the keys that the engine's own clients read. A client of misses needs less memory."""
    work = ["drive", "--server", case.address, "--keys", str(case.keys), *SHAPE, "--json"]
    load = ["--depth", "64", "--timeout", "10s", "--warmup", "0s", "--duration", "10ms"]
    engine(cpus, *work, *load, "--quiet")


def _cell(
    player: Player, case: Case, shape: tuple[int, int], cpus: set[int], notes: list[str]
) -> str:
    """The memory of a client in a shape; without one, the reason is added to the notes."""
    connections, keys = shape
    try:
        command = player.command(case._replace(connections=connections, keys=keys), 0)
        return f"{peak_bytes(command, cpus, case.address, connections) / 1e6:.0f}"
    except FailedError as error:
        notes.append(f"{player.name}, {connections:,} connections, {keys:,} keys: {error}")
        return "-"


def _tape(keys: int, cpus: set[int], folder: Path) -> Tape:
    path = folder / f"{keys}.tape"
    began = time.monotonic()
    engine(cpus, "tape", "write", "--out", str(path), "--keys", str(keys), *SHAPE)
    return Tape(keys, path.stat().st_size, time.monotonic() - began)
