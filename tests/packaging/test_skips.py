"""Skipped tests are counted by reason, and may not become more."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tools.skips import TABLE, complaints

LIMITS = {"*GEMS=*": 2, "apt-get install zsh": 1}


@pytest.mark.parametrize(
    ("reasons", "says"),
    [
        (["a: GEMS=a", "b: GEMS=b", "apt-get install zsh"], []),
        ([], []),
        (["GEMS=1", "GEMS=2", "GEMS=3"], ["3 tests skipped, 2 at most: *GEMS=*"]),
        (["no root"], ["skipped for a new reason: no root"]),
    ],
)
def test_more_skips_are_a_complaint(reasons: list[str], says: list[str]) -> None:
    assert complaints(reasons, LIMITS) == says


@pytest.mark.parametrize("reason", ["apt-get install memcached", "plays one server", ""])
def test_the_table_lets_no_unnamed_reason_pass(reason: str) -> None:
    limits = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    assert complaints([reason], limits) == [f"skipped for a new reason: {reason}"]


def test_a_run_keeps_its_reasons(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import *\n")
    (tmp_path / "test_it.py").write_text(
        "import pytest\n\n\ndef test_call():\n    pytest.skip('no root')\n\n\n"
        "@pytest.mark.skip(reason='no fish')\ndef test_mark():\n    pass\n\n\n"
        "def test_passes():\n    pass\n"
    )
    (tmp_path / ".pytest_cache").mkdir()
    configuration = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path)]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *configuration, "-n", "1", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr
    kept = json.loads((tmp_path / ".pytest_cache" / "skips").read_text(encoding="utf-8"))
    assert kept == ["no fish", "no root"]
