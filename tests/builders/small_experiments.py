"""Small experiments that tests play with the real CLI: their files, and their outcomes."""

from pathlib import Path

from cachemark.model.outcome import Outcome, from_line

_WORK = """
[[workloads]]
name = "mixed"
mix = { get = 8, set = 1, mget = 1 }
keys = { count = 100, distribution = "zipf:0.99" }
values = { size = "10..100" }
records = 1000

[[loads]]
name = "one"
"""

TRIALS = f"""
name = "small"
question = "Does it work?"
design = "trials"
blocks = 2
clients = ["native"]
servers = ["embedded"]
{_WORK}
[timing]
warmup_ms = 20
measure_ms = 300
ready_ms = 5000
silence_ms = 2000
"""

# For trials that start many processes: a busy machine needs longer.
PATIENT = (
    "ready_ms = 5000\nsilence_ms = 2000",
    "ready_ms = 60000\nsilence_ms = 30000\ntimeout_ms = 10000",
)

ROUNDS = f"""
name = "turns"
question = "Which is faster?"
design = "rounds"
blocks = 2
clients = ["native"]
servers = ["embedded"]
twice = "native"
{_WORK}
[timing]
warmup_ms = 80
measure_ms = 240
ready_ms = 10000
silence_ms = 5000

[rounds]
slice_ms = 20
until = "fixed"
"""


def write(folder: Path, text: str = TRIALS, **changes: str) -> str:
    """Write the experiment to a file, with some of its settings changed; returns the file's name.

    A change names a setting (`blocks`), and has its new value as TOML (`"4"`).
    """
    lines = text.splitlines()
    for name, value in changes.items():
        (at,) = (i for i, line in enumerate(lines) if line.startswith(f"{name} ="))
        lines[at] = f"{name} = {value}"
    (folder / "experiment.toml").write_text("\n".join(lines))
    return "experiment.toml"


def read_outcomes(folder: Path) -> list[Outcome]:
    """The outcomes of the only run in a folder, in the order in which they were stored."""
    (path,) = folder.glob("results/*/outcomes.jsonl")
    return [from_line(line) for line in path.read_bytes().splitlines()]
