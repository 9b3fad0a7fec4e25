"""pymemcache's own integration tests, which its package has, against the embedded server."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cachemark.endpoints.servers import parse_spec, running
from tests.conftest import ROOT

PACKAGES = sorted((ROOT / "workers/python").glob(".venv/lib/python3*/site-packages"))
SUITE = PACKAGES[0] / "pymemcache/test/test_integration.py" if PACKAGES else Path()


# It stores an item that expires after a second, then touches it: a busy machine may be too late.
EXPIRING = "test_touch"
MAX_REPEATS = 5


def play(address: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the suite, or the selected tests of it, against a server."""
    host, port = address.rsplit(":", 1)
    command = [sys.executable, "-m", "pytest", "-q", "-o", "addopts=", "-p", "no:cacheprovider"]
    return subprocess.run(
        [*command, str(SUITE), "--server", host, "--port", port, *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(PACKAGES[0]), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def only_expired(run: subprocess.CompletedProcess[str]) -> bool:
    """Whether tests failed, all of them those that depend on the expiry time."""
    failed = [line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return bool(failed) and all(f"::{EXPIRING}[" in line for line in failed)


@pytest.mark.skipif(not SUITE.is_file(), reason="cachemark setup python")
@pytest.mark.parametrize("io", ["blocking", "events", "uring", "busy"])
def test_pymemcache_finds_a_memcached(io: str, tmp_path: Path) -> None:
    # The suite sets the limit of memory to 50 MiB, which is what it is already.
    with running(parse_spec(f"embedded:io={io},threads=2,memory=50m")) as server:
        run = play(server.addresses[0], tmp_path)
        passed = re.search(r"(\d+) passed", run.stdout)
        for _ in range(MAX_REPEATS):
            if only_expired(run):
                run = play(server.addresses[0], tmp_path, "-k", EXPIRING)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr
    assert passed is not None, run.stdout
    assert int(passed.group(1)) >= 90
