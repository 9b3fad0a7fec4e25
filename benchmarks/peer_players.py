"""The programs of `make peers`: the engine's own clients, and the load generators on PATH."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from metered import SPARE_S, FailedError
from players import SHAPE, Case, found_peers, has_uring, peer_job, store_keys

from cachemark.checks.fidelity.tools import TOOLS
from cachemark.host.process import binary_path
from cachemark.model.client_name import NATIVE

FLOOR = "null client"

Command = Callable[[Case, float], list[str]]


class Player(NamedTuple):
    """A program, how it plays a case, what it checks of a reply, and whether it can pipeline."""

    name: str
    command: Command
    verifies: str
    pipelines: bool = True


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
    always = ("--no-prefill", "--quiet", "--timeout", "10s")
    return _engine("drive", (*always, *more), case, seconds)


def _engine(verb: str, more: tuple[str, ...], case: Case, seconds: float) -> list[str]:
    work = ["--server", case.address, "--keys", str(case.keys), *SHAPE]
    load = ["--connections", str(case.connections), "--depth", str(case.depth)]
    times = ["--warmup", "0s", "--duration", f"{round((seconds + SPARE_S) * 1000)}ms"]
    return [binary_path(), verb, *work, *load, *times, *more]


def stored_players(case: Case, cpus: set[int], folder: Path) -> Iterator[Player]:
    """The peers on PATH that could store the keys that they are going to read."""
    for name, tool in found_peers().items():
        try:
            store_keys(tool, case, cpus, folder / name)
        except FailedError as error:
            print(f"left out: {error}", file=sys.stderr)
        else:
            yield peer_player(name, folder)


def peer_player(name: str, folder: Path) -> Player:
    """A peer, which keeps its settings in a folder of its name."""
    tool = TOOLS[name]

    def command(case: Case, seconds: float) -> list[str]:
        return tool.command(peer_job(tool, case, folder / name, seconds))

    return Player(name, command, tool.verifies, tool.pipelines)


def absent_peers(played: set[str]) -> Iterator[tuple[str, str]]:
    """The load generators that did not play, each with the reason."""
    for name, tool in TOOLS.items():
        if name not in played:
            why = "played no case" if tool.program() else f"not on PATH: {tool.home}"
            yield name, why
