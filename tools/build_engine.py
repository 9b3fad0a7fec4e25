"""Build the engine with cargo, and show how far it is: crates of the total, and seconds.

`uv sync` builds it too, without a word for minutes. It finds what was built here and only packs it.
On a terminal the line is rewritten; elsewhere there is a line every ten seconds.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

ENGINE = Path(__file__).resolve().parent.parent / "engine"
COMMAND = ["cargo", "build", "--release", "--locked", "--bin", "cachemark-engine"]
# cargo's own progress bar, which ends in "35/120: names".
_PROGRESS = re.compile(r"(\d+)/(\d+)(?:: |$)")
_LINE_EVERY_S = 10.0
# `make -j2` would have cargo take its jobs from there, and its other target runs cargo too.
_MAKES_OWN = ("MAKEFLAGS", "MFLAGS")


def main() -> int:
    """Build; cargo's exit status."""
    began = time.monotonic()
    environment = {
        **{name: os.environ[name] for name in os.environ if name not in _MAKES_OWN},
        "CARGO_TERM_PROGRESS_WHEN": "always",
        "CARGO_TERM_PROGRESS_WIDTH": "100",
        "CARGO_TERM_COLOR": "never",
    }
    with subprocess.Popen(
        COMMAND, cwd=ENGINE, env=environment, stderr=subprocess.PIPE, text=True
    ) as cargo:
        assert cargo.stderr is not None
        output = _follow(cargo.stderr, began)
    if cargo.returncode:
        print("".join(output), file=sys.stderr)
    elif time.monotonic() - began > 1:
        print(f"{_start()}setup: engine built in {time.monotonic() - began:.0f} s")
    return cargo.returncode


def _follow(stderr: IO[str], began: float) -> list[str]:
    """Show the progress that cargo reports; return the rest of its output."""
    kept: list[str] = []
    shown = began
    # Text mode takes the carriage returns of the bar for ends of lines.
    for line in stderr:
        found = _PROGRESS.search(line)
        if found is None or "Building" not in line:
            kept.append(line)
        elif sys.stdout.isatty() or time.monotonic() - shown > _LINE_EVERY_S:
            shown = time.monotonic()
            done, total = found.groups()
            end = "" if sys.stdout.isatty() else "\n"
            text = f"{_start()}setup: engine, crate {done} of {total}, {shown - began:.0f} s"
            print(text, end=end, flush=True)
    return kept


def _start() -> str:
    return "\r" if sys.stdout.isatty() else ""


if __name__ == "__main__":
    sys.exit(main())
