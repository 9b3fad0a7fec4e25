"""Does a live page disturb what it shows? The same run with and without viewers, in turns.

Each run plays the native client and itself once more (`twice`). Runs without viewers are compared
with runs that three viewers watch, by `cachemark compare`: one value for each run. The viewers
receive the stream of events; they draw nothing, since browsers of other people run elsewhere.
"""

from __future__ import annotations

import argparse
import http.client
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

from cachemark.report.compare import RENDERERS, CellFilter
from cachemark.report.compare.stored import compare_stored
from cachemark.runs.storage.store import Run, open_run, run_names

VIEWERS = 3
FIGURES = ("rate", "p99", "client-cpu", "server-cpu")
_POLL_S = 0.2


def play(root: Path, options: list[str], viewers: int) -> tuple[Run, float]:
    """Play a run beside `viewers` viewers; the run, and the CPU time of the server of pages."""
    known = set(run_names(root))
    verb = [sys.executable, "-m", "cachemark", "run", "quick", "--runs", str(root), *options]
    with served(root) if viewers else unserved() as (address, server):
        player = subprocess.Popen(verb, stdout=subprocess.DEVNULL)
        while player.poll() is None and not (new := set(run_names(root)) - known):
            time.sleep(_POLL_S)
        new = set(run_names(root)) - known
        watching = [
            threading.Thread(target=watch, args=(address, name), daemon=True)
            for name in new
            for _ in range(viewers)
        ]
        for thread in watching:
            thread.start()
        # Status 1: some trials do not count, which the comparison tells.
        if player.wait() not in (0, 1) or not new:
            sys.exit(f"the run ended with status {player.returncode}")
        for thread in watching:
            thread.join()
        return open_run(new.pop(), root), cpu_s(server)


@contextmanager
def served(root: Path) -> Generator[tuple[str, int]]:
    """A server of pages: its address, and the number of its process."""
    verb = [sys.executable, "-m", "cachemark", "web", "--runs", str(root), "--port", "0"]
    with subprocess.Popen(verb, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            address = server.stdout.readline().partition(" is shown at ")[2].partition("/;")[0]
            yield address, server.pid
        finally:
            server.terminate()


@contextmanager
def unserved() -> Generator[tuple[str, int]]:
    """No server."""
    yield "", 0


def watch(address: str, name: str) -> None:
    """Receive a run's events until it ends. A stream of a run without events ends at once."""
    received = b""
    while b"event: points" not in received:
        connection = http.client.HTTPConnection(urlsplit(address).netloc)
        connection.request("GET", f"/runs/{quote(name)}/live/events?after=0")
        received = connection.getresponse().read()
        connection.close()
        time.sleep(_POLL_S)


def cpu_s(pid: int) -> float:
    """The CPU time of a process; 0 without one."""
    return time.clock_gettime(~pid << 3 | 2) if pid else 0.0


def main() -> None:
    """Play, and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=6, help="runs of each kind")
    parser.add_argument("--blocks", type=int, default=12, help="sittings of each run")
    parser.add_argument("--runs", type=Path, required=True, help="folder for the runs")
    given = parser.parse_args()
    options = [
        *("--client", "native", "--set", "twice=native", "--server", "embedded"),
        *("--set", "rounds.until=fixed"),
        "--blocks", str(given.blocks),
    ]  # fmt: skip
    given.runs.mkdir(parents=True, exist_ok=True)
    alone: list[Run] = []
    watched: list[Run] = []
    spent: list[float] = []
    for pair in range(given.pairs):
        for viewers in (0, VIEWERS) if pair % 2 == 0 else (VIEWERS, 0):
            run, cpu = play(given.runs, options, viewers)
            (watched if viewers else alone).append(run)
            spent += [cpu] if viewers else []
    compared = compare_stored(alone, watched, CellFilter(), FIGURES, None)
    print(RENDERERS["table"](compared, 160))
    print(f"CPU time of the server of pages: {max(spent):.2f} s at most in a run")


if __name__ == "__main__":
    main()
