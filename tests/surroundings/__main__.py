"""Plays all programs of table.toml in all its surroundings, or in those that the words name."""

import difflib
import shutil
import subprocess
import sys
import tempfile
from itertools import islice
from pathlib import Path

from tests.builders.small_experiments import PATIENT, TRIALS, write
from tests.conftest import ROOT
from tests.runs.agents.hosts_files import write_hosts
from tests.surroundings import PROGRAMS, SURROUNDINGS, Program, Surrounding

# One of each language, each with a client that plays gets and sets in text or binary.
_CLIENTS = (
    "native", "reference", "c/libmemcached", "go/gomemcache", "java/spymemcached",
    "node/memcached", "perl/fast", "php/memcached", "python/pymemcache", "ruby/dalli",
    "rust/memcache",
)  # fmt: skip
_USUAL = Surrounding(name="usual", launcher=["env"])
_TIMEOUT_S = 3600
_DIFFERENT_LINES = 10


def _prepare(folder: Path) -> None:
    """The experiment with one client of each language, and files of hosts and servers."""
    work = TRIALS.replace("records = 1000", "records = 1000\nops = 200").replace(*PATIENT)
    work = work.replace("get = 8, set = 1, mget = 1", "get = 9, set = 1")
    clients = ", ".join(f'"{name}"' for name in _CLIENTS)
    write(folder, work, blocks="1", servers='["memcached"]', clients=f"[{clients}]")
    (folder / "experiment.toml").rename(folder / "languages.toml")
    shutil.copy(ROOT / "docs" / "examples" / "trace.csv", folder)
    fleet = '[[server]]\nname = "small"\nmemory = "4m"\nrate = 1000\n'
    (folder / "fleet.toml").write_text(fleet, encoding="utf-8")
    write_hosts(folder, (("a", "client+server", "127.0.0.1"),), tls=True)


def _play(surrounding: Surrounding, program: Program, folder: Path) -> tuple[str, str]:
    """Play a program in the folder; its stdout, and what is wrong, if anything is."""
    runs = sorted((folder / "results").glob("*/run.json"))
    run = str(runs[0].parent) if runs else ""
    words = [word.replace("{run}", run) for word in program.arguments]
    ended = subprocess.run(
        surrounding.command(folder, [sys.executable, "-m", "cachemark", *words]),
        cwd=folder, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False,
    )  # fmt: skip
    wrong = ended.returncode not in program.status or "Traceback" in ended.stderr
    said = f"status {ended.returncode}\n{ended.stdout[-2000:]}{ended.stderr}"
    return ended.stdout, said if wrong else ""


def _failures(surrounding: Surrounding, usual: dict[str, str]) -> int:
    """Play all programs in a surrounding, and print what is wrong; how many things are."""
    failures = 0
    programs = [one for one in PROGRAMS if not (one.sets_up and surrounding.read_only)]
    with tempfile.TemporaryDirectory(prefix="surroundings-") as name:
        folder = Path(name)
        _prepare(folder)
        for program in programs:
            words = " ".join(program.arguments)
            stdout, wrong = _play(surrounding, program, folder)
            if program.same and not wrong and usual.setdefault(words, stdout) != stdout:
                lines = difflib.unified_diff(usual[words].splitlines(), stdout.splitlines(), n=0)
                wrong = "\n".join(["it printed another text:", *islice(lines, _DIFFERENT_LINES)])
            if wrong:
                failures += 1
                print(f"{surrounding.name}: cachemark {words}: {wrong}", flush=True)
    print(f"{surrounding.name}: {failures} of {len(programs)} failed", flush=True)
    return failures


def main(names: list[str]) -> int:
    """Exit status 1 if a program did not do what it should in one of the surroundings."""
    usual: dict[str, str] = {}
    rows = [SURROUNDINGS[name] for name in names or SURROUNDINGS]
    return min(1, sum(_failures(row, usual) for row in (_USUAL, *rows)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
