"""The programs that read exports, installed where they can be; a test skips where they cannot."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

READERS = Path(__file__).parent / "readers"
BENCHSTAT = "golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da"
GOOGLE_COMPARE = Path("/usr/share/benchmark/compare.py")
_PATIENCE_S = 300


def need(program: str) -> str:
    """The program's path; skips where it is not on this machine."""
    found = shutil.which(program)
    if not found:
        pytest.skip(f"{program} is not on this machine")
    return found


def fetched(command: list[str], what: str, **environment: str) -> None:
    """Run what fetches a tool; skips where it cannot be had, as without a network."""
    try:
        ended = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            env={**os.environ, **environment},
            check=False,
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{what} cannot be fetched here: it took too long")
    if ended.returncode:
        said = (ended.stderr or ended.stdout).strip().splitlines() or ["it failed"]
        pytest.skip(f"{what} cannot be fetched here: {said[-1]}")


@pytest.fixture(scope="session")
def benchstat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Go's benchstat, in a folder of its own."""
    folder = tmp_path_factory.mktemp("gobin")
    fetched([need("go"), "install", BENCHSTAT], "benchstat", GOBIN=str(folder))
    return folder / "benchstat"


@pytest.fixture(scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that runs readers/Readers.java with HdrHistogram's and JMH's classes."""
    runtime, maven = need("java"), need("mvn")
    need("javac")
    folder = tmp_path_factory.mktemp("jars")
    fetched(
        [maven, "-q", "-B", "-f", str(READERS / "pom.xml"), "dependency:copy-dependencies",
         f"-DoutputDirectory={folder}"],
        "HdrHistogram and JMH",
    )  # fmt: skip
    return [runtime, "-cp", f"{folder}/*", str(READERS / "Readers.java")]
