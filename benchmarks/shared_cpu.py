"""By how much slices tell too high a rate of callers who share a CPU: before and after they grow.

    python benchmarks/shared_cpu.py              some minutes
    python benchmarks/shared_cpu.py --slices 20  the same, rougher

A model in virtual time, without a clock: the callers of a closed loop share one CPU, and what they
do goes through the Python worker's own lead-in. The true rate is one operation for each mean time.
"""

from __future__ import annotations

import argparse
import heapq
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from cachemark.analysis.verdict.slice_bias import grown_ms
from cachemark.model.experiment import RoundsTiming

sys.path.append(str(Path(__file__).parent.parent / "workers" / "python"))
# The worker's modules have no types.
lead_in: Any = import_module("lead_in")
window: Any = import_module("window")

Order = Literal["arrival", "random", "sharing"]
Sizes = Literal["constant", "exponential", "lognormal"]
Draw = np.random.Generator


class Shared(NamedTuple):
    """Callers who share a CPU: how many, who is next, how long operations take on it."""

    callers: int
    order: Order
    sizes: Sizes
    mean_ns: float

    @property
    def operation_ns(self) -> float:
        """The time of one operation of one caller, waiting included."""
        return self.callers * self.mean_ns


class _Callers:
    """The worker's notes of each caller in one slice."""

    def __init__(self, count: int, length_ns: int, lead_in_ns: int) -> None:
        own = window.Window(0, length_ns, window.FOR_EVER_NS, lead_in_ns)
        self._parts: list[Any] = [lead_in.LeadIn(own, 0, False) for _ in range(count)]
        self._noted, self._ended_ns = [0] * count, [0] * count

    def ended(self, caller: int, now_ns: float) -> None:
        part = self._parts[caller]
        if now_ns >= part.end_ns:
            part.advance(int(now_ns), self._noted[caller])
        self._noted[caller] += 1
        self._ended_ns[caller] = int(now_ns)

    def ops(self) -> int:
        return sum(
            noted - (noted if part.counted_from is None else part.counted_from)
            for part, noted in zip(self._parts, self._noted, strict=True)
        )

    def elapsed_ns(self) -> float:
        ends = zip(self._parts, self._ended_ns, strict=True)
        return sum(part.elapsed_ns(ended_ns) for part, ended_ns in ends) / len(self._parts)


def told(of: Shared, slice_ms: float, slices: int, draw: Draw) -> float:
    """The rate by `slices` slices, relative to the true one."""
    length_ns = round(slice_ms * 1e6)
    lead_in_ns = round(length_ns * RoundsTiming().lead_in_percent / 100)
    ops = elapsed_ns = 0.0
    for _ in range(slices):
        callers = _Callers(of.callers, length_ns, lead_in_ns)
        if of.order == "sharing":
            _share(of, length_ns, callers, draw)
        else:
            _one_by_one(of, length_ns, callers, draw)
        ops, elapsed_ns = ops + callers.ops(), elapsed_ns + callers.elapsed_ns()
    return ops / elapsed_ns * of.mean_ns


def length_ms(of: Shared) -> float:
    """The length to which slices grow for these callers."""
    return grown_ms(RoundsTiming(), of.operation_ns)


def _size(of: Shared, draw: Draw) -> Callable[[], float]:
    if of.sizes == "exponential":
        return lambda: draw.exponential(of.mean_ns)
    if of.sizes == "lognormal":
        return lambda: of.mean_ns * draw.lognormal(-0.5, 1)
    return lambda: of.mean_ns


def _share(of: Shared, length_ns: int, callers: _Callers, draw: Draw) -> None:
    """All that are active advance alike; in virtual time, each as if it were alone."""
    size, now_ns, at = _size(of, draw), 0.0, 0.0
    active = [(size(), caller) for caller in range(of.callers)]
    heapq.heapify(active)
    while active:
        ends, caller = active[0]
        now_ns, at = now_ns + (ends - at) * len(active), ends
        callers.ended(caller, now_ns)
        if now_ns < length_ns:
            heapq.heapreplace(active, (at + size(), caller))
        else:
            heapq.heappop(active)


def _one_by_one(of: Shared, length_ns: int, callers: _Callers, draw: Draw) -> None:
    """Each operation is done at once when its turn comes."""
    size, now_ns = _size(of, draw), 0.0
    waiting = list(range(of.callers))
    while waiting:
        place = int(draw.integers(len(waiting))) if of.order == "random" else 0
        caller = waiting.pop(place)
        now_ns += size()
        callers.ended(caller, now_ns)
        if now_ns < length_ns:
            waiting.append(caller)


def main() -> None:
    """Print a row for each kind of callers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--slices", type=int, default=200, help="slices for each figure (200)")
    count = parser.parse_args().slices
    draw = np.random.default_rng(1)
    print("| callers | rate | next is | operations | slices of 30 ms | grown | length |")
    print("|--:|--:|---|---|--:|--:|--:|")
    cases: list[tuple[Order, Sizes]] = [
        ("arrival", "exponential"),
        ("random", "constant"),
        ("random", "lognormal"),
        ("sharing", "exponential"),
        ("sharing", "lognormal"),
    ]
    for callers, rate in ((8, 10_000), (32, 10_000), (50, 20_000)):
        for order, sizes in cases:
            of = Shared(callers, order, sizes, 1e9 / rate)
            short, grown = (told(of, ms, count, draw) for ms in (30.0, length_ms(of)))
            print(
                f"| {callers} | {rate:,}/s | {order} | {sizes} | {100 * (short - 1):+.1f} % "
                f"| {100 * (grown - 1):+.1f} % | {length_ms(of):g} ms |",
                flush=True,
            )


if __name__ == "__main__":
    main()
