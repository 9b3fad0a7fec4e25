"""The benchmarks of the engine itself run through and print every row."""

import importlib
import subprocess
import sys

import pytest

from cachemark.checks.fidelity.tools import TOOLS
from tests.cli.in_process import Inside
from tests.conftest import ROOT

SERVERS = ("null", "embedded")
DEPTHS = (1, 16)


@pytest.fixture(autouse=True)
def _benchmarks_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def played(name: str, *options: str) -> subprocess.CompletedProcess[str]:
    """A benchmark that has run through."""
    ended = subprocess.run(
        [sys.executable, f"benchmarks/{name}.py", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended


@pytest.mark.slow("plays every client of the benchmark")
def test_the_native_client_beside_its_floor() -> None:
    ended = played("client", "--rounds", "1", "--seconds", "0.3", "--no-peers")
    compared = [line.split() for line in ended.stdout.splitlines() if " to " in line]
    rows = {(row[0], row[1], " ".join(row[2:-6])) for row in compared if row[0] in SERVERS}
    # The kernel may have no io_uring.
    rows = {row for row in rows if row[2] != "native, uring"}
    assert rows == {
        (server, depth, client)
        for server in SERVERS
        for depth in ("1", "16")
        for client in ("null client", "native", "native, intervals")
    }
    assert "an interval a second: " in ended.stdout
    assert "memory at most " in ended.stdout
    last = [line.split()[0] for line in ended.stdout.splitlines()[-4:]]
    assert last == ["20%", "50%", "80%", "spinner"]


def tables(printed: str) -> dict[str, dict[str, list[str]]]:
    """The printed tables by their headings: the cells of each row, by its first cell."""
    found = {}
    for section in printed.split("\n### ")[1:]:
        head, _, body = section.partition("\n")
        rows = [line.strip("| ").split(" | ") for line in body.splitlines() if line[:1] == "|"]
        found[head] = {row[0]: row[1:] for row in rows[2:]}
    return found


@pytest.mark.slow("plays every load generator on PATH")
def test_peers_beside_the_native_client() -> None:
    """Every tool has a row, whether it is on this machine or not; no cost is missing in silence."""
    options = ["--rounds", "1", "--seconds", "0.2", "--no-fidelity", "--server", "embedded"]
    ended = played("peers", *options)
    costs, ratios, memory = tables(ended.stdout).values()
    assert [name for name in TOOLS if name not in costs or name not in memory] == []
    # On a busy machine, a program may get no CPU in its fifth of a second.
    measured = [
        (name, number)
        for name in ("null client", "native")
        for number, depth in enumerate(DEPTHS)
        if f"{name}, depth {depth}: left out" not in ended.stderr
    ]
    assert measured, ended.stderr
    for name, number in measured:
        assert float(costs[name][2 * number]) > 0, ended.stderr
        assert float(memory[name][0]) > 0, ended.stderr
        if ("native", number) in measured:
            assert float(ratios[name][number]) > 0, ended.stderr
    assert "tape is a part of its memory" in ended.stdout


def test_a_spinning_thread_is_late_by_its_gaps() -> None:
    lags = importlib.import_module("lags")
    # Nine of ten ns lie in gaps of 1 µs, the others in one of 10 µs: p95 is in the middle of that.
    gaps = {1_000: 90, 10_000: 1}
    assert lags.lateness_us(gaps, (95,)) == [pytest.approx(5.0)]
    # Of even gaps each part is as likely.
    assert lags.lateness_us({1_000: 7}, (10, 50, 90)) == [pytest.approx(x) for x in (0.1, 0.5, 0.9)]


def test_suites_of_the_book_can_be_planned(inside: Inside) -> None:
    suites = importlib.import_module("results").SUITES
    for name, suite in suites.items():
        ended = inside("run", name, *suite.options, "--dry-run")
        assert ended.returncode == 0, ended.stderr
        if "design=rounds" in suite.options:
            assert "in turns of" in ended.stderr
