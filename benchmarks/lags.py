"""How late the native client sends in an open loop, and how late the machine is by itself."""

from __future__ import annotations

import os
import random
import statistics
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from players import CONNECTIONS, Case, FailedError, native, play_native

from cachemark.model import histogram

SHARES = (0.2, 0.5, 0.8)
PERCENTS = (50, 90, 99, 99.9)
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class Window(NamedTuple):
    """Send lag at each percent, the client's own part of its p99, and what was stolen meanwhile."""

    rate: float
    lag_us: list[float]
    own_us: float
    stolen_percent: float


def lags(case: Case, cpu: int, rounds: int, seconds: float) -> None:
    """Print send lag at shares of the highest rate, and what a mere spinning thread would see.

    Each figure is the median of `rounds` windows, with their range where there is one.
    """
    try:
        highest = play_native(case, {cpu}, seconds).rate
    except FailedError as error:
        print(f"left out: lags: {error}", file=sys.stderr)
        return
    windows: dict[float, list[Window]] = {share: [] for share in SHARES}
    spun: list[list[float]] = []
    for _ in range(rounds):
        for share in random.sample(SHARES, len(SHARES)):
            try:
                windows[share].append(_window(case, cpu, highest * share, seconds))
            except FailedError as error:
                print(f"left out: {error}", file=sys.stderr)
        spun.append(lateness_us(gaps_ns(cpu, seconds), PERCENTS))
    print(
        f"\nopen loop, {CONNECTIONS} connections, of {highest:.0f} ops/s at most; send lag in µs:"
    )
    print("the median of windows, and their range; stolen: by the hypervisor, of the client's CPU")
    print(
        f"{'share':>7}{'ops/s':>9}{'p50':>8}{'p90':>8}{'p99':>8}  {'':18}{'p99.9':>8}  "
        f"{'own part of p99':22}{'stolen':>8}"
    )
    for share, told in windows.items():
        if told:
            _row(f"{share:.0%}", told)
    spinning = [Window(0, each, each[2], 0) for each in spun]
    _row("spinner", spinning)


def _row(name: str, told: list[Window]) -> None:
    p50, p90, p99, p999 = zip(*(window.lag_us for window in told), strict=True)
    own = [window.own_us for window in told]
    spins = not told[0].rate
    rate = "" if spins else f"{statistics.median(window.rate for window in told):.0f}"
    stolen = [window.stolen_percent for window in told]
    print(
        f"{name:>7}{rate:>9}{statistics.median(p50):8.1f}{statistics.median(p90):8.1f}"
        f"{statistics.median(p99):8.1f}  {_range(p99):18}{statistics.median(p999):8.1f}  "
        + ("" if spins else f"{statistics.median(own):8.1f}  {_range(own):12}")
        + ("" if spins else f"{statistics.median(stolen):7.1f} %  {_range(stolen)}")
    )


def _range(figures: Any) -> str:
    return f"{min(figures):.1f} to {max(figures):.1f}"


def _window(case: Case, cpu: int, rate: float, seconds: float) -> Window:
    stolen_s, began_s = steal_s(cpu), time.monotonic()
    told = native(case, {cpu}, seconds, "--rate", f"{rate:.0f}", "--schedule", "poisson")
    length_s = time.monotonic() - began_s
    lag, late = histogram.decode(told["send_lag"]), histogram.decode(told["generator_lag"])
    return Window(
        rate=told["operations"]["get"]["ok"] / told["elapsed_ns"] * 1e9,
        lag_us=[lag.percentile(p) / 1e3 for p in PERCENTS],
        own_us=late.percentile(99) / 1e3,
        stolen_percent=100 * (steal_s(cpu) - stolen_s) / length_s,
    )


def steal_s(cpu: int, stat: Path = Path("/proc/stat")) -> float:
    """What the hypervisor has taken of a CPU since boot, in ticks of 10 ms: nan if not told."""
    for line in stat.read_text().splitlines():
        words = line.split()
        if words[0] == f"cpu{cpu}" and len(words) > 8:
            return int(words[8]) * TICK_S
    return float("nan")


def gaps_ns(cpu: int, seconds: float) -> dict[int, int]:
    """Gaps between readings of the clock by a thread that does nothing else on a CPU, counted."""
    usable = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    gaps: dict[int, int] = {}
    try:
        read, known = time.perf_counter_ns, gaps.get
        before = read()
        end = before + int(seconds * 1e9)
        while before < end:
            now = read()
            gap = now - before
            gaps[gap] = known(gap, 0) + 1
            before = now
    finally:
        os.sched_setaffinity(0, usable)
    return gaps


def lateness_us(gaps: dict[int, int], percents: tuple[float, ...]) -> list[float]:
    """Percentiles of how late a spinning thread would begin what is due at any instant.

    What is due within a gap is begun at its end: later than x for max(0, gap − x) of its length.
    """
    longest = sorted(gaps.items(), reverse=True)
    total = sum(gap * count for gap, count in longest)
    return [_exceeded(longest, total * (1 - percent / 100)) / 1e3 for percent in percents]


def _exceeded(longest: list[tuple[int, int]], time_ns: float) -> float:
    """The x for which the parts of the gaps beyond it add up to so much."""
    beyond = many = 0
    for (gap, count), (below, _) in pairwise([*longest, (0, 0)]):
        beyond += gap * count
        many += count
        if beyond - many * below >= time_ns:
            return max(0.0, (beyond - time_ns) / many)
    return 0.0
