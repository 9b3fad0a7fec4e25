"""macOS has no /proc, and fewer calls: stored runs are read there, and nothing is measured."""

import json
import os
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
    ["import", "first.zip", "--runs", "imported"],
    ["report", "--runs", "imported"],
    ["completion", "bash"],
    ["servers"],
    ["protocol"],
    ["man", "pages"],
]
MEASURING = [
    ["run", "quick"],
    ["run", "quick", "--dry-run"],
    ["drive", "127.0.0.1:11211"],
    ["new", "mine.toml"],
    ["compare", "--play", "--client", "native", "--client", "native?wire=meta"],
    ["clients"],
    ["conform", "native"],
    ["fidelity", "native"],
    ["calibrate", "native"],
    ["resilience", "native"],
    ["jmh", "java/folsom"],
    ["doctor"],
    ["memory", "embedded"],
    ["probe", "embedded"],
]
PAGES = [
    "/runs",
    "/runs/first",
    "/runs/first/report",
    "/compare?a=first&b=second",
    "/assets/icon.svg",
]


def test_reading_verbs_work_and_measuring_verbs_say_why_not(tmp_path: Path) -> None:
    (run,) = STORE.iterdir()
    for name in ("first", "second"):
        shutil.copytree(run, tmp_path / "results" / name)
    ended = subprocess.run(
        [sys.executable, str(PROGRAM), json.dumps([READING + MEASURING, PAGES])],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    statuses = [*[0] * len(READING), *[2] * len(MEASURING), *[200] * len(PAGES)]
    assert json.loads(ended.stdout) == statuses, ended.stderr
    assert ended.stderr.count("measurements need Linux") == len(MEASURING)
    assert "Traceback" not in ended.stderr


def test_all_cpus_are_usable_where_the_system_cannot_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.sched_getaffinity")
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    assert usable_cpus() == [0, 1, 2]
