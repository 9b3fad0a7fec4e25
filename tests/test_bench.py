"""The benchmarks of the engine itself run through and print every row."""

from __future__ import annotations

import subprocess
import sys

from tests.conftest import ROOT


def test_the_native_client_beside_its_floor() -> None:
    ended = subprocess.run(
        [sys.executable, "benchmarks/client.py", "--rounds", "1", "--seconds", "0.1", "--no-peers"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    compared = [line.split() for line in ended.stdout.splitlines() if " to " in line]
    rows = {(row[0], row[1], " ".join(row[2:-6])) for row in compared}
    # The kernel may have no io_uring.
    rows = {row for row in rows if row[2] != "native, uring"}
    assert rows == {
        (server, depth, client)
        for server in ("null", "embedded")
        for depth in ("1", "16")
        for client in ("null client", "native", "native, intervals")
    }
    assert "an interval a second: " in ended.stdout
    assert [line.split()[0] for line in ended.stdout.splitlines()[-3:]] == ["20%", "50%", "80%"]
