"""The precision of rounds on this machine: settings, goals, and what starts cost.

    python benchmarks/precision.py --load          all tables (about 11 minutes)
    python benchmarks/precision.py                 the same without other load (about 8 minutes)
    python benchmarks/precision.py --parts goals   only some of the tables: costs, settings, goals
    python benchmarks/precision.py --parts settings --only trials   rows that have this word

`costs` is what a start, a warm-up and a turn cost in each language. `settings` compares lengths of
slices, numbers of sittings, and trials: each row measures for the same time; the starts of servers
and workers come on top. `A/A` is a client against itself: its interval should hold 1, and its width
is what this machine allows. `pair` is pylibmc against pymemcache. Widths are half of the 95 %
interval. `goals` plays the suite `quick` as `make bench` does, quiet and with every core busy
elsewhere, and says for each goal whether it is met, or how many minutes it takes here.
"""

from __future__ import annotations

import argparse
import math
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import msgspec
from precision_goals import SAME_CLIENT_QUIET, goals_of, half_width, narrower_goal

from cachemark.analysis.rounds.estimate import mean_of_logs
from cachemark.analysis.statistics import CONFIDENCE, FIGURES, Interval, figures_of
from cachemark.endpoints.clients import registry
from cachemark.host import process
from cachemark.host.placement import usable_cpus
from cachemark.model.client_name import REPEAT_SUFFIX
from cachemark.model.experiment import Experiment, Keys, Load, RoundsTiming, Timing, Workload
from cachemark.model.outcome import Outcome
from cachemark.model.plan import make_plan
from cachemark.report.rounds import run_answers
from cachemark.runs.play import new_job, play
from cachemark.runs.stage import Display, parties_of
from cachemark.runs.storage.store import latest_run

BASE, OTHER = "python/pymemcache", "python/pylibmc"
LANGUAGES = (
    "native",
    "c/libmemcached",
    "rust/memcache",
    "go/gomemcache",
    "java/xmemcached",
    "node/memcached",
    "php/memcached",
    "perl/fast",
    "ruby/dalli",
    "python/pymemcache",
    "pypy/pymemcache",
)
DEFAULT_SLICE_MS, DEFAULT_SITTINGS = 30, 6
SLICES_MS = (10, DEFAULT_SLICE_MS, 100, 250)
SITTINGS = (4, 12)
TRIAL_MS = 1000
PARTS = ("costs", "settings", "goals")
COLUMNS = (
    "setting",
    "took",
    "valid",
    "A/A rate",
    "pair rate",
    "A/A CPU",
    "pair CPU",
    "±3 % after",
)
Row = tuple[Interval | None, float]


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table: a design that is given `seconds`."""

    name: str
    design: str
    sittings: int = 6
    slice_ms: float = 30.0


def experiment(setting: Setting, clients: list[str], seconds: float) -> Experiment:
    """The work of the suite `quick` in this setting."""
    arms = len(clients) + 1
    each_ms = seconds * 1e3 / arms
    rounds = setting.design == "rounds"
    blocks = setting.sittings if rounds else max(2, round(each_ms / TRIAL_MS))
    return Experiment(
        name="precision",
        question="How narrow are the answers?",
        clients=clients,
        servers=["embedded"],
        twice=clients[0],
        blocks=blocks,
        seed=random.SystemRandom().randrange(2**31),
        design=setting.design,  # type: ignore[arg-type]
        rounds=RoundsTiming(slice_ms=setting.slice_ms, until="fixed"),
        timing=Timing(
            warmup_ms=300,
            measure_ms=max(1, round(each_ms / blocks * 0.85)) if rounds else TRIAL_MS,
        ),
        workloads=[
            Workload(
                name="mixed",
                mix={"get": 9, "set": 1},
                keys=Keys(count=2000, distribution="zipf:0.99"),
                records=20_000,
            )
        ],
        loads=[Load(name="one-caller")],
    )


def play_all(experiment: Experiment) -> tuple[list[Outcome], float]:
    """The outcomes, and the seconds that they took."""
    parties = parties_of(experiment, print)
    with tempfile.TemporaryDirectory(prefix="cachemark-") as folder:
        job = new_job(make_plan(experiment), parties, Path(folder))
        began = time.monotonic()
        outcomes = play(job, nullcontext(Display()), lambda _: None)
        return outcomes, time.monotonic() - began


def ratio(outcomes: list[Outcome], client: str, figure: str) -> Interval | None:
    """A client's figure against that of BASE, paired by block; only trials that count."""
    by_client = {
        name: {
            o.trial.block: o
            for o in outcomes
            if o.trial.cell.client == name and o.verdict == "VALID"
        }
        for name in (client, BASE)
    }
    blocks = sorted(by_client[client].keys() & by_client[BASE].keys())
    first = figures_of([by_client[client][b] for b in blocks], FIGURES[figure])
    second = figures_of([by_client[BASE][b] for b in blocks], FIGURES[figure])
    if not first or not second or len(blocks) < 2:
        return None
    logs = [math.log(one / two) for one, two in zip(first, second, strict=True)]
    return mean_of_logs(logs).ratio(CONFIDENCE)


def shown(of: Interval | None) -> str:
    half = half_width(of)
    return "–" if of is None or half is None else f"{of.value:.3f} ±{100 * half:.1f} %"


@contextmanager
def busy(loops: int) -> Generator[None]:
    """Run `loops` busy loops meanwhile."""
    spinners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


def print_row(*cells: str) -> None:
    """A row of a table. Printed at once, as the next row takes a minute."""
    first, *others = cells
    print(f"{first:<25}" + "".join(f"{cell:>17}" for cell in others), flush=True)


def print_settings(seconds: float, only: str) -> None:
    """Play every setting whose name has `only` once, in random order."""
    usual = Setting(name=f"rounds, slices of {DEFAULT_SLICE_MS} ms", design="rounds")
    trials = Setting(name="trials of 1 s", design="trials")
    settings = [
        *[
            Setting(name=f"rounds, slices of {ms} ms", design="rounds", slice_ms=ms)
            for ms in SLICES_MS
            if ms != DEFAULT_SLICE_MS
        ],
        usual,
        *[Setting(name=f"rounds, {n} sittings", design="rounds", sittings=n) for n in SITTINGS],
        trials,
    ]
    print(
        f"\n{DEFAULT_SITTINGS} sittings and slices of {DEFAULT_SLICE_MS} ms, if not said otherwise"
    )
    print_row(*COLUMNS)
    chosen = [setting for setting in settings if only in setting.name]
    found: dict[Setting, Row] = {}
    for number, setting in enumerate(random.sample(chosen, len(chosen)), 1):
        announce(f"setting {number} of {len(chosen)}: {setting.name}")
        outcomes, took_s = play_all(experiment(setting, [BASE, OTHER], seconds))
        found[setting] = ratio(outcomes, BASE + REPEAT_SUFFIX, "rate"), took_s
        print_row(setting.name, *precision_cells(outcomes, took_s))
    if usual in found and trials in found:
        print(narrower_goal(found[usual], found[trials]).line(), flush=True)


def announce(what: str) -> None:
    """A line of progress, which is no part of the tables."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def print_goals(*, loaded: bool) -> None:
    """Play the suite `quick` as `make bench` does, and judge its answers."""
    heading = "every core busy elsewhere" if loaded else "quiet"
    announce(f"goals, {heading}: the suite `quick`, at most 3 minutes of measuring")
    loops = len(usable_cpus()) if loaded else 0
    with tempfile.TemporaryDirectory(prefix="cachemark-") as folder, busy(loops):
        began = time.monotonic()
        command = [sys.executable, "-m", "cachemark", "run", "quick", "--runs", folder]
        # Its progress and its answers: the tables of this program stay alone on stdout.
        subprocess.run(command, check=False, stdout=sys.stderr)
        took_s = time.monotonic() - began
        run = latest_run(Path(folder))
        found = run_answers(run.header.experiment, run.outcomes())
    print(f"\ngoals of `make bench`, {heading}: {took_s:.0f} s")
    if not found.sittings:
        print("no slice was played")
        return
    for goal in goals_of(found, took_s, loaded=loaded):
        print(goal.line(), flush=True)


def precision_cells(outcomes: list[Outcome], took_s: float) -> list[str]:
    """The values of a setting for COLUMNS, but for its name."""
    again = ratio(outcomes, BASE + REPEAT_SUFFIX, "rate")
    half = half_width(again)
    valid = sum(outcome.verdict == "VALID" for outcome in outcomes)
    return [
        f"{took_s:.0f} s",
        f"{valid}/{len(outcomes)}",
        shown(again),
        shown(ratio(outcomes, OTHER, "rate")),
        shown(ratio(outcomes, BASE + REPEAT_SUFFIX, "client-cpu")),
        shown(ratio(outcomes, OTHER, "client-cpu")),
        "–" if half is None else f"{took_s / 60 * (half / SAME_CLIENT_QUIET) ** 2:.1f} min",
    ]


def print_costs() -> None:
    """Print the cost of a start, a warm-up and a turn in each language."""
    print_row("client", "start", "warm-up", "turn", "CPU of a turn")
    setting = Setting(name="costs", design="rounds", sittings=1)
    known = registry(process.binary_path())
    set_up = [client for client in LANGUAGES if not known[client].missing()]
    announce("costs: a sitting with a client of each language")
    outcomes, _ = play_all(experiment(setting, set_up, 20))
    for outcome in outcomes:
        if outcome.rounds is not None:
            of = outcome.rounds
            print_row(
                outcome.trial.cell.client,
                f"{of.start_ns / 1e9:.2f} s",
                f"{of.warmup_rounds * of.length_us / 1e6:.2f} s",
                f"{of.turn_cost_ns / 1e6:.2f} ms",
                f"{of.turn_cpu_ns / 1e6:.2f} ms",
            )


def main() -> None:
    """Print the tables, row by row."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=20, help="time of each setting")
    parser.add_argument("--only", default="", help="a part of the names of the settings to play")
    parser.add_argument("--parts", default=",".join(PARTS), help="tables, joined by commas")
    parser.add_argument("--load", action="store_true", help="goals with every core busy elsewhere")
    options = parser.parse_args()
    parts = options.parts.split(",")
    if unknown := [part for part in parts if part not in PARTS]:
        parser.error(f"no such part: {unknown[0]}; there are {', '.join(PARTS)}")
    if "costs" in parts and not options.only:
        print_costs()
    if "settings" in parts:
        print_settings(options.seconds, options.only)
    if "goals" in parts and not options.only:
        for loaded in (False, True) if options.load else (False,):
            print_goals(loaded=loaded)


if __name__ == "__main__":
    main()
