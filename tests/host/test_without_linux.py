"""macOS has no /proc, and fewer calls: stored runs are read there, and nothing is measured."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cachemark.host.placement import usable_cpus
from tests.conftest import ROOT

STORE = ROOT / "tests" / "runs" / "storage" / "earlier_versions" / "0.1.0"
PROGRAM = Path(__file__).parent / "without_linux.py"
READING = [
    ["--version"],
    ["suites"],
    ["report"],
    ["report", "--format", "html", "--out", "report.html"],
    ["history", "native"],
    ["compare", "first", "second"],
    ["explain", "first", "--client", "native"],
    ["export", "first", "first.zip"],
    ["man", "pages"],
]
MEASURING = [["run", "quick"], ["run", "quick", "--dry-run"], ["clients"], ["conform", "native"]]


def test_reading_verbs_work_and_measuring_verbs_say_why_not(tmp_path: Path) -> None:
    (run,) = STORE.iterdir()
    for name in ("first", "second"):
        shutil.copytree(run, tmp_path / "results" / name)
    ended = subprocess.run(
        [sys.executable, str(PROGRAM), json.dumps(READING + MEASURING)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == [0] * len(READING) + [2] * len(MEASURING), ended.stderr
    assert ended.stderr.count("measurements need Linux") == len(MEASURING)
    assert "Traceback" not in ended.stderr


def test_all_cpus_are_usable_where_the_system_cannot_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.sched_getaffinity")
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    assert usable_cpus() == [0, 1, 2]
