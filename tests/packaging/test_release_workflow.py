"""The workflow of a release: its own steps, run as a runner does."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT
from tools import dist

WORKFLOW: dict[str, Any] = yaml.safe_load(
    (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
)


def steps(job: str) -> list[str]:
    """The commands of a job."""
    return [step["run"] for step in WORKFLOW["jobs"][job]["steps"] if "run" in step]


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a step; programs in the folder `programs` replace the machine's."""
    path = f"{folder / 'programs'}{os.pathsep}{os.environ['PATH']}"
    names = {"GITHUB_REF_NAME": "v1.2.3", "GITHUB_REPOSITORY": "owner/cachemark"}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", command],
        cwd=folder,
        env={**os.environ, **names, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("command", [*steps("engine-aarch64"), *steps("packages")])
def test_packages_are_made_by_targets_of_the_makefile(command: str) -> None:
    made = subprocess.run(
        [*command.split(), "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    assert "python" in made.stdout


def test_packages_are_built_before_they_are_checked() -> None:
    assert steps("packages") == [
        f"make {target}"
        for target in ("dist", "same-dist", "checksums", "release-check", "try-dist")
    ]


@pytest.mark.parametrize("whole", [True, False])
def test_what_is_published(whole: bool, tmp_path: Path) -> None:
    """The packages go to PyPI, and everything to the release: only if no byte has changed."""
    (tmp_path / "dist").mkdir()
    for name in ("cachemark-1.2.3.tar.gz", "cachemark-1.2.3-py3-none-any.whl", dist.PARTS):
        (tmp_path / "dist" / name).write_text(name, encoding="utf-8")
    dist.write_checksums(tmp_path / "dist")
    (tmp_path / "programs").mkdir()
    program = tmp_path / "programs" / "gh"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    if not whole:
        (tmp_path / "dist" / dist.PARTS).write_text("changed", encoding="utf-8")
    check, *publish = steps("publish")
    assert (run(check, tmp_path).returncode == 0) == whole
    if whole:
        pack, release = (run(command, tmp_path) for command in publish)
        assert pack.returncode == 0, pack.stderr
        assert len(list((tmp_path / "pypi").iterdir())) == 2
        assert release.stdout.startswith("release\ncreate\nv1.2.3\n--repo\nowner/cachemark\n")
        assert f"dist/{dist.PARTS}" in release.stdout
