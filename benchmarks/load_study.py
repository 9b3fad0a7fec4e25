"""How far other work on the machine moves the ratio of two clients.

    python benchmarks/load_study.py                          four levels, six runs of each
    python benchmarks/load_study.py --loops 0 2 --repeats 4  other levels
    python benchmarks/load_study.py --seed 7                 the same order of play again

pylibmc against pymemcache, in rounds. A level is a number of busy loops per core. Each repetition
plays every level once, in random order, so what else the machine does meets all levels alike. A run
is one value: the table has the geometric mean of a level's runs, and its ratio to the first level,
paired by repetition, with 95 % intervals over the repetitions.
"""

from __future__ import annotations

import argparse
import math
import os
import random
from collections.abc import Sequence

from precision import BASE, OTHER, Setting, announce, busy, experiment, play_all, ratio

from cachemark.analysis.rounds.estimate import mean_of_logs
from cachemark.analysis.statistics import CONFIDENCE, Interval
from cachemark.host.placement import usable_cpus

LEVELS = (0.0, 0.5, 1.0, 2.0)


def ratio_under(loops: float, sittings: int, seconds: float) -> tuple[float, float] | None:
    """ln of the ratio of one run, and the load average at its end; None without a valid sitting."""
    setting = Setting(name="rounds", design="rounds", sittings=sittings)
    with busy(round(loops * len(usable_cpus()))):
        outcomes, _ = play_all(experiment(setting, [BASE, OTHER], seconds))
    found = ratio(outcomes, OTHER, "rate")
    return (math.log(found.value), os.getloadavg()[0]) if found else None


def main() -> None:
    """Play all repetitions, then print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--loops", type=float, nargs="+", default=LEVELS, help="busy loops per core"
    )
    parser.add_argument("--repeats", type=int, default=6, help="runs of each level (6)")
    parser.add_argument("--sittings", type=int, default=4, help="sittings of each run (4)")
    parser.add_argument("--seconds", type=float, default=8.0, help="measuring in each run (8)")
    parser.add_argument("--seed", type=int, default=1, help="of the order of play (1)")
    options = parser.parse_args()
    order = random.Random(options.seed)
    played: dict[float, list[tuple[float, float]]] = {level: [] for level in options.loops}
    for repeat in range(options.repeats):
        found: dict[float, tuple[float, float]] = {}
        for level in order.sample(list(played), len(played)):
            announce(f"repetition {repeat + 1} of {options.repeats}: {level:g} loops per core")
            one = ratio_under(level, options.sittings, options.seconds)
            if one is not None:
                found[level] = one
        # A repetition without one of its levels has no pairs.
        if len(found) == len(played):
            for level, one in found.items():
                played[level].append(one)
    print(f"{OTHER} / {BASE}, {len(played[options.loops[0]])} repetitions")
    print("| loops per core | load average | ratio | beside the first level |\n|--:|--:|--:|--:|")
    first = [log for log, _ in played[options.loops[0]]]
    for level, runs in played.items():
        logs, loads = [log for log, _ in runs], [load for _, load in runs]
        beside = [log - base for log, base in zip(logs, first, strict=True)]
        moved = shown(beside) if level != options.loops[0] else "1"
        print(f"| {level:g} | {sum(loads) / max(1, len(loads)):.1f} | {shown(logs)} | {moved} |")


def shown(logs: Sequence[float]) -> str:
    """The geometric mean with its interval."""
    if not logs:
        return "–"
    of: Interval = mean_of_logs(logs).ratio(CONFIDENCE)
    if of.low is None or of.high is None:
        return f"{of.value:.3f}"
    return f"{of.value:.3f} ({of.low:.3f}–{of.high:.3f})"


if __name__ == "__main__":
    main()
