"""The send lag of the native client in an open loop, and the delays of the machine itself."""

from __future__ import annotations

import os
import random
import statistics
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from metered import FailedError
from players import CONNECTIONS, Case, native, play_native

from cachemark.model import histogram

SHARES = (0.2, 0.5, 0.8)
PERCENTS = (50, 90, 99, 99.9)
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class Window(NamedTuple):
    """Percentiles of the send lag, p99 of the generator lag, and steal of the client's CPU."""

    rate: float
    lag_us: list[float]
    generator_us: float
    steal_percent: float


def lags(case: Case, cpu: int, rounds: int, seconds: float) -> None:
    """Print the send lag at shares of the highest rate, and the lateness of a spinning thread.

    Each figure is the median of `rounds` windows, some with the range of the windows.
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
    print("the median of windows, and their range; steal: of the client's CPU, by the hypervisor")
    print(
        f"{'share':>7}{'ops/s':>9}{'p50':>8}{'p90':>8}{'p99':>8}  {'':18}{'p99.9':>8}  "
        f"{'generator lag p99':22}{'steal':>8}"
    )
    for share, of_share in windows.items():
        if of_share:
            _row(f"{share:.0%}", of_share)
    _row("spinner", [Window(0, lateness, lateness[2], 0) for lateness in spun])


def _row(name: str, windows: list[Window]) -> None:
    p50, p90, p99, p999 = zip(*(window.lag_us for window in windows), strict=True)
    generator = [window.generator_us for window in windows]
    spins = not windows[0].rate
    rate = "" if spins else f"{statistics.median(window.rate for window in windows):.0f}"
    steal = [window.steal_percent for window in windows]
    print(
        f"{name:>7}{rate:>9}{statistics.median(p50):8.1f}{statistics.median(p90):8.1f}"
        f"{statistics.median(p99):8.1f}  {_range(p99):18}{statistics.median(p999):8.1f}  "
        + ("" if spins else f"{statistics.median(generator):8.1f}  {_range(generator):12}")
        + ("" if spins else f"{statistics.median(steal):7.1f} %  {_range(steal)}")
    )


def _range(figures: Any) -> str:
    return f"{min(figures):.1f} to {max(figures):.1f}"


def _window(case: Case, cpu: int, rate: float, seconds: float) -> Window:
    steal_before_s, began_s = steal_s(cpu), time.monotonic()
    measured = native(case, {cpu}, seconds, "--rate", f"{rate:.0f}", "--schedule", "poisson")
    length_s = time.monotonic() - began_s
    send_lag = histogram.decode(measured["send_lag"])
    generator_lag = histogram.decode(measured["generator_lag"])
    return Window(
        rate=measured["operations"]["get"]["ok"] / measured["elapsed_ns"] * 1e9,
        lag_us=[send_lag.percentile(p) / 1e3 for p in PERCENTS],
        generator_us=generator_lag.percentile(99) / 1e3,
        steal_percent=100 * (steal_s(cpu) - steal_before_s) / length_s,
    )


def steal_s(cpu: int, stat: Path = Path("/proc/stat")) -> float:
    """Steal time of a CPU since boot; nan if the kernel does not report it."""
    for line in stat.read_text().splitlines():
        words = line.split()
        if words[0] == f"cpu{cpu}" and len(words) > 8:
            return int(words[8]) * TICK_S
    return float("nan")


def gaps_ns(cpu: int, seconds: float) -> dict[int, int]:
    """Histogram of the gaps between the clock readings of a thread that spins on a CPU."""
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
    """Percentiles of the lateness of a spinning thread, for work that is due at a random instant.

    Work that is due within a gap begins at the end of the gap. It is later than x if it was due in
    the first max(0, gap − x) of the gap.
    """
    longest = sorted(gaps.items(), reverse=True)
    total = sum(gap * count for gap, count in longest)
    return [_exceeded(longest, total * (1 - percent / 100)) / 1e3 for percent in percents]


def _exceeded(longest: list[tuple[int, int]], time_ns: float) -> float:
    """The x above which the gaps have this much time in total."""
    beyond = many = 0
    for (gap, count), (below, _) in pairwise([*longest, (0, 0)]):
        beyond += gap * count
        many += count
        if beyond - many * below >= time_ns:
            return max(0.0, (beyond - time_ns) / many)
    return 0.0
