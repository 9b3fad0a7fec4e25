"""The GitHub action, its steps run as a runner does, on small repositories in two languages.

test_ci_examples.py has a third one. Java would take two minutes of CPU time here.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from cachemark.endpoints.clients import registry
from cachemark.host.process import binary_path
from tests.builders.library_trees import TREES
from tests.conftest import ROOT

FOLDER = Path(".github") / "actions" / "compare"
ACTION: dict[str, Any] = yaml.safe_load((ROOT / FOLDER / "action.yml").read_text(encoding="utf-8"))
SET_UP, COMPARE = ACTION["runs"]["steps"]


def step(
    declared: dict[str, Any], checkout: Path, job: Path, inputs: dict[str, str], **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a step of the action in the job's folder; `checkout` is where cachemark is."""
    given = {name: one.get("default", "") for name, one in ACTION["inputs"].items()} | inputs
    assert set(given) == set(ACTION["inputs"])
    variables = {
        name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: given[found[1]], text)
        for name, text in declared["env"].items()
    }
    assert declared["shell"] == "bash"
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", declared["run"]],
        cwd=job,
        env={**os.environ, **variables, **more, "GITHUB_ACTION_PATH": str(checkout / FOLDER)},
        capture_output=True,
        text=True,
        check=False,
    )


def compared(job: Path, client: str, base: str, head: str) -> subprocess.CompletedProcess[str]:
    """The step that plays, as long as it takes to know."""
    language, _, _ = client.partition("/")
    if reason := registry(binary_path())[client].missing():
        pytest.skip(reason)
    inputs = {"client": client, "base": base, "head": head, "margin": "20", "max": "10m"}
    more = {"GITHUB_STEP_SUMMARY": str(job / "summary.md"), "XDG_CACHE_HOME": str(job / language)}
    return step(COMPARE, ROOT, job, inputs, **more)


@pytest.mark.slow("builds a library twice, and plays six sittings")
@pytest.mark.parametrize("client", ["python/pymemcache", "ruby/dalli"])
def test_a_slower_head_fails_the_job(client: str, tmp_path: Path) -> None:
    """Both trees are named as checkouts are: without a slash."""
    for name in ("base", "head"):
        TREES[client](tmp_path / name, slow=name == "head")
    ended = compared(tmp_path, client, "base", "head")
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "Worse, and the estimate is beyond the margin of 20 %" in ended.stdout
    for page in ("summary.md", "answer.md"):
        text = (tmp_path / page).read_text(encoding="utf-8")
        assert "worse" in text
        assert "Why, for each get: " in text


@pytest.mark.slow("plays six sittings")
def test_an_equal_head_passes(tmp_path: Path) -> None:
    ended = compared(tmp_path, "python/pymemcache", "4.0.0", "3.5.2")
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_base_that_cannot_be_built_explains_in_the_comment(tmp_path: Path) -> None:
    """Not in an old answer, which another step may have left."""
    (tmp_path / "base").mkdir()
    TREES["python/pymemcache"](tmp_path / "head", slow=False)
    (tmp_path / "answer.md").write_text("an old answer", encoding="utf-8")
    ended = compared(tmp_path, "python/pymemcache", "base", "head")
    assert ended.returncode == 2, ended.stdout + ended.stderr
    assert "cannot be installed" in ended.stderr
    for page in ("summary.md", "answer.md"):
        text = (tmp_path / page).read_text(encoding="utf-8")
        assert f"python/pymemcache@{tmp_path / 'base'}' cannot be installed" in text
        assert "old" not in text


@pytest.mark.parametrize(
    ("client", "language"),
    [
        ("ruby/dalli", "ruby"),
        ("java/spymemcached", "java"),
        ("pypy/pymemcache", "python"),
        ("native", None),
    ],
)
def test_the_language_of_the_client_is_set_up(
    client: str, language: str | None, tmp_path: Path
) -> None:
    """In a checkout whose `make setup` and `cachemark` say what they were asked for."""
    shutil.copytree(ROOT / FOLDER, tmp_path / FOLDER)
    (tmp_path / "Makefile").write_text("setup:\n\t@echo make setup\n", encoding="utf-8")
    program = tmp_path / ".venv" / "bin" / "cachemark"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho cachemark "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    ended = step(SET_UP, tmp_path, tmp_path, {"client": client, "base": "a", "head": "b"})
    assert ended.returncode == 0, ended.stderr
    asked = [f"cachemark setup --install {language}"] if language else []
    assert ended.stdout.splitlines() == ["make setup", *asked]
