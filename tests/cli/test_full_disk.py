"""All that writes files, on a disk that is full: a sentence, a status, and nothing half-written."""

import ctypes
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from cachemark.cli import main
from cachemark.host import process
from tests.cli.unwritable import check_refusal, ended_inside, store

__all__ = ["store"]

# Of the kernel: a namespace of its own for mounts, and for users.
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
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


def play(case: Case, words: str, output: str) -> None:
    """Run the command, its stdout a file on the disk if it has a name."""
    if output:
        os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT, 0o600), 1)
    if words.startswith("ENGINE "):
        sys.exit(subprocess.call([ENGINE, *words.split()[1:]]))
    if case.temporary:
        os.environ["TMPDIR"], tempfile.tempdir = str(Path.cwd()), None
    main(words.split())


def on_a_small_disk(case: Case, words: str, output: str, left: Path) -> None:
    """Play the command in a folder that becomes a disk, and list the files that are left on it."""
    mount(Path.cwd(), case.room * 1024 + 4096)
    os.chdir(Path.cwd())  # of the disk, no longer of what it covers
    Path("filler").write_bytes(bytes(4096))
    try:
        play(case, words, output)
    finally:
        names = [path.name for path in Path().rglob("*")]
        left.write_text("\n".join(names), encoding="utf-8")


def mount(folder: Path, size: int) -> None:
    """A disk of this size over a folder, for this process and what it starts alone."""
    root = os.geteuid() == 0
    user, group = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS | (0 if root else CLONE_NEWUSER)):
        raise OSError(ctypes.get_errno(), "no namespace of its own")
    if not root:
        for name, text in (
            ("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1"),
        ):  # fmt: skip
            Path("/proc/self", name).write_text(text, encoding="utf-8")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder], check=True)


def mount_and_end(disk: Path) -> None:
    mount(disk, 4096)
    sys.exit(0)


@pytest.fixture(scope="module")
def namespaces(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip where this user can mount nothing."""
    disk = tmp_path_factory.mktemp("disk")

    status, said = ended_inside(partial(mount_and_end, disk), disk)
    if status:
        pytest.skip(f"no disk of its own can be mounted here: {said.strip()}")


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
    folder = tmp_path if "hosts" in case.words else store
    words, _, output = case.words.replace("STORE", str(folder)).partition(" > ")
    words = words.replace("hosts.toml", f"{folder}/hosts.toml")
    status, said = ended_inside(partial(on_a_small_disk, case, words, output, left), disk)
    check_refusal(status, said)
    # The test has made the file that stdout is.
    names = set(left.read_text().split()) - {"c", "filler"}
    if case.resumable:
        names = {name for name in names if not name.endswith("-quick")} - RESUMABLE - {"results"}
    assert not names
