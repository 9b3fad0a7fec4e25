"""The cost of the fault proxy while it does nothing: the same load with and without it, in turns.

The first load is that of a resilience cell, an open loop of 400 calls a second; the second is a
closed loop on one connection, where every call waits for the proxy twice. Times count what other
programs do to both alike, so the ratio of a pair means more than each of its times.
"""

from __future__ import annotations

import argparse
import os
from statistics import median
from typing import NamedTuple

from players import engine

from cachemark.endpoints.fault_proxy import fault_proxy
from cachemark.endpoints.servers.running import process_use
from cachemark.model.histogram import decode
from cachemark.runs.resilience.server import FragileServer

LOADS = {
    "400 calls a second on 4 connections": ("--connections", "4", "--rate", "400"),
    "a closed loop on 1 connection": ("--connections", "1"),
}
SHAPE = ("--keys", "1009", "--size", "100..1000", "--mix", "get=9,set=1", "--quiet", "--json")


class Part(NamedTuple):
    """One run: the median time of a read, and operations in all."""

    p50_us: float
    ops: int


def play(address: str, seconds: float, *load: str) -> Part:
    """Play a load against an address."""
    times = ("--warmup", "0s", "--duration", f"{int(seconds * 1000)}ms")
    cpus = os.sched_getaffinity(0)
    done = engine(cpus, "drive", "--server", address, *SHAPE, *load, *times)["measure"]
    operations = done["operations"]
    p50_ns = decode(operations["get"]["service"]).percentile(50)
    return Part(p50_ns / 1e3, sum(each["ok"] for each in operations.values()))


def main() -> None:
    """Play pairs of each load, and print their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=15, help="runs of each kind")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of each")
    given = parser.parse_args()
    with FragileServer() as server, fault_proxy(server.address) as proxy:
        play(server.address, given.seconds)
        for name, load in LOADS.items():
            direct: list[Part] = []
            proxied: list[Part] = []
            before = process_use(proxy.pid)
            for pair in range(given.pairs):
                turns = [(server.address, direct), (proxy.address, proxied)]
                for address, parts in turns if pair % 2 == 0 else reversed(turns):
                    parts.append(play(address, given.seconds, "--no-prefill", *load))
            after = process_use(proxy.pid)
            assert before is not None
            assert after is not None
            ratios = sorted(p.p50_us / d.p50_us for p, d in zip(proxied, direct, strict=True))
            cpu_us = (after.cpu_ns - before.cpu_ns) / 1e3 / sum(part.ops for part in proxied)
            print(
                f"{name}: p50 of reads {median(d.p50_us for d in direct):.1f} µs without the "
                f"proxy, {median(p.p50_us for p in proxied):.1f} µs with it; ratio of pairs "
                f"{median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}); CPU time of the "
                f"proxy {cpu_us:.1f} µs per operation"
            )


if __name__ == "__main__":
    main()
