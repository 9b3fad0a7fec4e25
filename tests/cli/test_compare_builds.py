"""`compare --play`: two builds in turns; the planted slow one is found, and equal ones are not."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT, Cli

LIBRARIES = ROOT / "workers" / "python" / ".venv" / "lib"
PROJECT = """
[build-system]
requires = ["setuptools>=70"]
build-backend = "setuptools.build_meta"
[project]
name = "pymemcache"
version = "99.0"
[tool.setuptools.packages.find]
include = ["pymemcache*"]
"""
REFUSED = [
    ("one client", ["--client", "native"], "two clients on one server, or two servers"),
    ("a run", ["some-run", "--client", "native", "--client", "null"], "--play takes no run"),
    (
        "a language without versions",
        ["--client", "native@1.0", "--client", "native"],
        "versions can be chosen for libraries of go, node, python only",
    ),
    (
        "no folder",
        ["--client", "python/pymemcache@./nowhere", "--client", "python/pymemcache"],
        "name a source tree",
    ),
    (
        "no such version",
        ["--client", "python/pymemcache@0.0.0", "--client", "python/pymemcache"],
        "cannot be installed",
    ),
]


@pytest.mark.parametrize(
    ("arguments", "says"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED]
)
def test_bad_input_is_one_clear_error(cli: Cli, arguments: list[str], says: str) -> None:
    ended = cli("compare", "--play", *arguments)
    assert ended.returncode == 2
    assert says in " ".join(ended.stderr.split())
    assert "Traceback" not in ended.stderr


def slow_build(folder: Path) -> Path:
    """A source tree of pymemcache whose every get works for some time first."""
    (source,) = LIBRARIES.glob("python3*/site-packages/pymemcache")
    shutil.copytree(source, folder / "pymemcache")
    client = folder / "pymemcache" / "client" / "base.py"
    text = client.read_text()
    body = "    def get(self, key: Key, default: Optional[Any] = None) -> Any:\n"
    assert body in text
    head, tail = text.split(body, 1)
    quotes, rest = tail.split('"""', 2)[0:2], tail.split('"""', 2)[2]
    client.write_text(f'{head}{body}{quotes[0]}"""{quotes[1]}"""\n        sum(range(2000))\n{rest}')
    (folder / "pyproject.toml").write_text(PROJECT)
    return folder


@pytest.mark.slow("builds a library, and plays six sittings twice")
def test_the_action_fails_for_a_slower_build_and_passes_for_an_equal_one(tmp_path: Path) -> None:
    script = ROOT / ".github" / "actions" / "compare" / "compare"
    head = slow_build(tmp_path / "head")
    common = {
        **os.environ,
        "CLIENT": "python/pymemcache",
        "MAX": "3m",
        "MARGIN": "20",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    summary = tmp_path / "summary.md"

    def play(base: str, new: str) -> subprocess.CompletedProcess[str]:
        env = {**common, "BASE": base, "HEAD": new, "GITHUB_STEP_SUMMARY": str(summary)}
        return subprocess.run(
            [str(script)], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )

    slower = play("4.0.0", str(head))
    assert slower.returncode == 1, slower.stdout + slower.stderr
    assert "Worse beyond the margin of 20 %" in slower.stdout
    assert "Worse beyond the margin" in summary.read_text()
    equal = play("4.0.0", "3.5.2")
    assert equal.returncode == 0, equal.stdout + equal.stderr
