"""Draw the pictures of README. Play it on a quiet machine.

    python benchmarks/pictures.py              all of them, about 25 minutes
    python benchmarks/pictures.py quick        only some

Each picture is drawn from one run of its suite, which stays in `results`. The clients play in turns
where the suite allows it: not where a workload ends by itself. What README says beside a picture
has to fit its run: the run's answers are printed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from cachemark.cli.exit_status import FAILED
from cachemark.report.conclusions import one_sentence
from cachemark.report.formats import draw_summary, load_report
from cachemark.runs.storage.store import latest_own_run

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
# The options of `cachemark run` for each suite. With 32 callers, a read of 50 keys lasts longer
# than a slice of the usual length.
_IN_TURNS = ["--quick", "--set", "design=rounds"]
SUITES = {
    "clients": ["--quick"],
    "quick": [],
    "java-clients": [
        *_IN_TURNS,
        "--set",
        "rounds.slice_ms=200",
        "--blocks",
        "4",
        "--set",
        "timing.warmup_ms=1500",
    ],
    "ruby-clients": [
        *[*_IN_TURNS, "--blocks", "6"],
        *["--workload", "set", "--workload", "get", "--workload", "multiget"],
        *["--workload", "store-mixed", "--workload", "store-big-read-multi"],
    ],
    "server-modes": [
        *["--blocks", "3", "--set", "timing.warmup_ms=1000", "--workload", "txn-20000"],
        *["--load", "text-1-threads", "--load", "text-20-threads", "--server", "memcached"],
        *["--server", "embedded:io=blocking", "--server", "embedded:io=events"],
    ],
    "emcache": ["--quick"],
    "inprocess-vs-network": ["--quick", "--workload", "set-1", "--workload", "get-1"],
}


def main(suites: list[str], runs: Path) -> None:
    """Play each suite, draw its picture, and print what it shows."""
    for number, suite in enumerate(suites, 1):
        print(f"{time.strftime('%H:%M')} suite {number} of {len(suites)}: {suite}", flush=True)
        command = [sys.executable, "-m", "cachemark", "run", suite, *SUITES[suite]]
        ended = subprocess.run([*command, "--runs", str(runs)], check=False)
        # With a client that failed there is still something to draw.
        if ended.returncode > FAILED:
            sys.exit(ended.returncode)
        run = latest_own_run(runs)
        picture = PICTURES / f"{suite}.png"
        picture.write_bytes(draw_summary(run))
        print(f"\n{picture}\n{one_sentence(load_report(run))}\n", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("suites", nargs="*", default=list(SUITES), help=", ".join(SUITES))
    parser.add_argument("--runs", type=Path, default=Path("results"), help="folder of the runs")
    options = parser.parse_args()
    if unknown := [name for name in options.suites if name not in SUITES]:
        parser.error(f"README has no picture of {unknown[0]}; it has {', '.join(SUITES)}")
    main(options.suites, options.runs)
