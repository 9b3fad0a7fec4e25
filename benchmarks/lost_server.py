"""The plan of a fleet beside real memcacheds, one of which is killed: hits, and each one's load.

    python benchmarks/lost_server.py [--servers 8] [--memory 2] [--seconds 400]

Gets by Zipf's law, each with a set after a miss, one after the other. The plan has the real
addresses, so it knows where each key is.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from cachemark.endpoints.servers import RunningServer, parse_spec, running
from cachemark.host.process import binary_path

_RATE = 300
# A MiB holds about 880 items of these values: the keys are more than twice what the servers hold.
_KEYS_OF_MIB = 2000
_VALUE_BYTES = 900
_HEADER = "time,op,key,size,ttl\n"


def _lines(keys: int, seconds: int) -> list[str]:
    drawn = random.Random(9)
    weights = list(accumulate((rank + 1) ** -0.6 for rank in range(keys)))
    chosen = drawn.choices(range(keys), cum_weights=weights, k=_RATE * seconds)
    return [
        f"{number / _RATE:.4f},get,user:{key},{_VALUE_BYTES},\n"
        for number, key in enumerate(chosen)
    ]


def _played(lines: list[str], addresses: list[str], folder: Path) -> float:
    """Let the native client play the gets. The share of hits."""
    part = folder / "part.csv"
    part.write_text(_HEADER + "".join(lines))
    command = [binary_path(), "drive", "--server", ",".join(addresses), "--hashing", "ketama"]
    command += ["--trace", str(part), "--gets", "cache-aside", "--prefill", "0", "--warmup", "0s"]
    command += ["--threads", "1", "--connections", "1", "--depth", "1", "--json"]
    # The value of a key depends on its place in the tape: one of an earlier part is a hit, too.
    command += ["--max-errors", "100%"]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    fetches = json.loads(ended.stdout)["measure"]["operations"]["fetch"]
    return 1 - fetches["misses"] / len(lines)


def _planned(trace: Path, addresses: list[str], memory: int, folder: Path) -> dict[str, Any]:
    """The plan's play of the trace, with the real addresses."""
    fleet = folder / "fleet.toml"
    fleet.write_text(
        f"addresses = {json.dumps(addresses)}\n"
        f'[[server]]\nname = "real"\nmemory = "{memory}m"\nnumber = {len(addresses)}\n'
    )
    command = [sys.executable, "-m", "cachemark", "capacity", str(trace), "--servers", str(fleet)]
    ended = subprocess.run([*command, "--json"], check=True, capture_output=True, text=True)
    return json.loads(ended.stdout)["fleet"]["played"]


def _gets(servers: list[RunningServer]) -> list[int]:
    return [int(server.stats()["cmd_get"]) for server in servers]


class Period(NamedTuple):
    """The share of gets that hit, and of all gets that each server got."""

    hits: float
    parts: list[float]


class Compared(NamedTuple):
    """A period as the plan predicts it, and as real servers show it."""

    predicted: Period
    measured: Period


def _measured(lines: list[str], servers: list[RunningServer], folder: Path) -> Period:
    begun = _gets(servers)
    hits = _played(lines, [server.addresses[0] for server in servers], folder)
    gets = [end - begin for begin, end in zip(begun, _gets(servers), strict=True)]
    return Period(hits, [count / sum(gets) for count in gets])


def _predicted(period: dict[str, Any], servers: int) -> Period:
    # The parts end with the last server that got a request.
    parts = period["parts"] + [0.0] * (servers - len(period["parts"]))
    return Period(1 - period["misses"]["value"], parts)


def lose_one(number: int, memory: int, seconds: int, folder: Path) -> tuple[Compared, Compared]:
    """The time before the hottest of `number` servers is killed, and the minute after.

    Each has `memory` MiB; the trace has `seconds`. Files are written into `folder`.
    """
    lines = _lines(_KEYS_OF_MIB * memory * number, seconds)
    trace = folder / "trace.csv"
    trace.write_text(_HEADER + "".join(lines))
    spec = parse_spec(f"memcached:memory={memory},threads=1")
    with ExitStack() as stack:
        servers = [stack.enter_context(running(spec)) for _ in range(number)]
        addresses = [server.addresses[0] for server in servers]
        plan = _planned(trace, addresses, memory, folder)
        loss = plan["loss"]
        # A fifth fills the caches, and the loss is in the middle of the rest.
        warm, lost_at = len(lines) // 5, len(lines) * 3 // 5
        _played(lines[:warm], addresses, folder)
        before = _measured(lines[warm:lost_at], servers, folder)
        lost = servers.pop(loss["server"])
        assert lost.pid is not None
        os.kill(lost.pid, signal.SIGKILL)
        after = _measured(lines[lost_at : lost_at + loss["seconds"] * _RATE], servers, folder)
    after.parts.insert(loss["server"], 0.0)
    return (
        Compared(_predicted(plan["before"], number), before),
        Compared(_predicted(dict(loss["cases"])["dropped"], number), after),
    )


def main() -> None:
    """Plan, play, kill, play on, and print predicted beside measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", type=int, default=8)
    parser.add_argument("--memory", type=int, default=2, help="of a server, in MiB")
    parser.add_argument("--seconds", type=int, default=400, help="of the trace, from 200")
    typed = parser.parse_args()
    if typed.servers < 2 or typed.memory < 1 or typed.seconds < 200:
        parser.error("at least 2 servers of 1 MiB are needed, and a trace of 200 seconds")
    with tempfile.TemporaryDirectory() as folder:
        found = lose_one(typed.servers, typed.memory, typed.seconds, Path(folder))
    for name, both in zip(("before", "in the minute after a server is killed"), found, strict=True):
        predicted, measured = both
        print(f"hits {name}: predicted {predicted.hits:.2%}, measured {measured.hits:.2%}")
        for server, parts in enumerate(zip(predicted.parts, measured.parts, strict=True)):
            print(f"  load of server {server}: {parts[0]:.3%}, measured {parts[1]:.3%}")


if __name__ == "__main__":
    main()
