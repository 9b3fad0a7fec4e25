"""All that writes files, on a disk that is full: a sentence, a status, and nothing half-written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from cachemark.host import process
from tests.cli.unwritable import check_refusal, store

__all__ = ["store"]

# Arguments: the disk's folder, its room in bytes, where to list what is left, the command.
ON_A_SMALL_DISK = """
disk=$1 room=$2 left=$3; shift 3
mount -t tmpfs -o size=$((room + 4096)) none "$disk" || exit 99
cd "$disk" && head -c 4096 /dev/zero > filler || exit 99
"$@"; status=$?
find . -mindepth 1 ! -name filler > "$left"
exit $status
"""
NAMESPACE = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "-Urm"]
CACHEMARK = [sys.executable, "-m", "cachemark"]
ENGINE = process.binary_path()
QUICK = "--client native --server embedded --blocks 1 --measure-ms 50 --set timing.warmup_ms=10"


class Case(NamedTuple):
    """A command, in which STORE is a folder with a run, an archive and a hosts file.

    `room` is the free part of the disk in KiB. `temporary`: temporary files are on it, too.
    `resumable`: a run is left that can be continued, whose files are whole.
    """

    words: str
    room: int = 0
    temporary: bool = False
    resumable: bool = False


REPORTS = "table answers markdown csv json html svg png vega-lite picture hgrm hlog openmetrics"
CASES = [
    *(Case(f"report 2026-made --runs STORE/results --format {f} --out o") for f in REPORTS.split()),
    Case("report 2026-made --runs STORE/results --format svg --out o/p", 12),
    Case("report 2026-made --runs STORE/results --format hgrm --out o/p", 4),
    Case("report 2026-made --runs STORE/results --format json --out o/p/r.json"),
    Case("history --runs STORE/results --out o", temporary=True),
    Case("export 2026-made run.zip --runs STORE/results"),
    Case("import STORE/run.zip"),
    Case("import STORE/run.zip", 8),
    Case("new mine.toml"),
    Case("man man1"),
    Case("man man1", 8),
    Case("completion bash > c"),
    Case("protocol > c"),
    Case("hosts certs hosts.toml", 8),
    Case(f"run quick {QUICK} --set design=trials"),
    Case(f"run quick {QUICK} --set design=trials", 16, resumable=True),
    Case(f"run quick {QUICK} --set design=trials --out o/p"),
    Case(f"run quick {QUICK}", 256, temporary=True),
    Case("calibrate native", temporary=True),
    Case("resilience reference --faults refused --profile common --sittings 1"),
    Case("resilience reference --faults refused --profile common --sittings 1", temporary=True),
    Case("memory embedded --items 9000 --size 1k..4k", 8, temporary=True),
    Case("compare 2026-made --runs STORE/results --client a --client b --format csv --out o"),
    Case("compare 2026-made --runs STORE/results --client a --client b --junit o/j --markdown o/m"),
    Case("ENGINE tape write --out t"),
    Case("ENGINE tape write --out t", 64),
    Case("ENGINE tape presets > c"),
    Case("ENGINE completion bash > c"),
    Case("ENGINE man man1"),
    Case("ENGINE man man1", 8),
]

RESUMABLE = {"run.json", "audit.json", "events.jsonl", "lock"}


def command_of(case: Case, folder: Path) -> list[str]:
    """The program with its arguments; one that writes to stdout is started by a shell."""
    words = case.words.replace("STORE", str(folder)).replace("hosts.toml", f"{folder}/hosts.toml")
    program = [ENGINE] if words.startswith("ENGINE ") else CACHEMARK
    arguments, _, output = words.removeprefix("ENGINE ").partition(" > ")
    command = [*program, *arguments.split()]
    return ["sh", "-c", f'exec "$@" > {output}', "sh", *command] if output else command


@pytest.fixture(scope="module")
def namespaces(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip where this user can mount nothing."""
    disk = str(tmp_path_factory.mktemp("disk"))
    command = [*NAMESPACE, "sh", "-c", f"mount -t tmpfs -o size=4096 none {disk}"]
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"no disk of its own can be mounted here: {tried.stderr.strip()}")


@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.words[:60]}, {case.room} KiB")
def test_a_full_disk_is_one_sentence_and_leaves_nothing(
    case: Case, store: Path, tmp_path: Path
) -> None:
    disk, left = tmp_path / "disk", tmp_path / "left"
    disk.mkdir()
    (tmp_path / "hosts.toml").write_text(
        (store / "hosts.toml").read_text().replace("certs", f"{disk}/c")
    )
    places = [str(disk), str(case.room * 1024), str(left)]
    command = command_of(case, tmp_path if "hosts" in case.words else store)
    ended = subprocess.run(
        [*NAMESPACE, "sh", "-c", ON_A_SMALL_DISK, "sh", *places, *command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **({"TMPDIR": str(disk)} if case.temporary else {})},
    )
    check_refusal(ended.returncode, ended.stderr)
    # A shell has made the file that stdout is.
    names = {Path(name).name for name in left.read_text().split()} - {"c"}
    if case.resumable:
        names = {name for name in names if not name.endswith("-quick")} - RESUMABLE - {"results"}
    assert not names
