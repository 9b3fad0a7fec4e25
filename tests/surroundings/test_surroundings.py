"""Programs do the same in every surrounding: here a short part, in `make surroundings` all of it.

Programs are started through the row's launcher. The tests' own surrounding would not do, as
tests/conftest.py gives programs the signals of a terminal.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cachemark.cli.front_page import VERBS
from tests.builders.small_experiments import TRIALS, read_outcomes, write
from tests.surroundings import PROGRAMS, SURROUNDINGS, Surrounding

_CACHEMARK = [sys.executable, "-m", "cachemark"]
_PATIENCE_S = 300
_OPS = 500
_SERVER = '["memcached:unix=yes"]'
# A busy machine may need long to start something, or leave the window no operation.
_WORK = TRIALS.replace("records = 1000", f"records = 1000\nops = {_OPS}").replace(
    "ready_ms = 5000\nsilence_ms = 2000", "ready_ms = 60000\nsilence_ms = 30000"
)


# Several rows that change different things in one run: `make surroundings` plays each row alone.
TOGETHER = [
    ("stdin closed", "umask 077", "HOME missing", "TMPDIR deep", "TZ=Asia/Kolkata"),
    ("no controlling terminal", "umask 000", "HOME read-only", "LANG=C", "TERM=dumb"),
    ("256 open files", "TMPDIR with a space", "LANG=tr_TR.UTF-8", "COLUMNS=40"),
    ("one CPU", "no IPv6", "checkout read-only", "HOME without a folder", "TERM unset"),
]


def row(name: str) -> Any:
    return pytest.param(SURROUNDINGS[name], id=name)


def temporary(folder: Path) -> dict[str, str]:
    """The environment, with a new folder for what is temporary."""
    (folder / "tmp").mkdir()
    return {**os.environ, "TMPDIR": str(folder / "tmp")}


def within(names: Sequence[str], folder: Path, command: list[str]) -> list[str]:
    """The words that start a command in all these surroundings at once."""
    for name in reversed(names):
        command = SURROUNDINGS[name].command(folder, command)
    return command


def test_each_row_without_a_signal_is_played_by_a_run() -> None:
    plain = [name for name, it in SURROUNDINGS.items() if not it.signal() and not it.slow]
    assert sorted(name for names in TOGETHER for name in names) == sorted(plain)


@pytest.mark.parametrize("surrounding", [row(name) for name in SURROUNDINGS])
def test_it_ends_with_its_program(surrounding: Surrounding, tmp_path: Path) -> None:
    """Nothing that the launcher starts holds the program's output open."""
    command = surrounding.command(tmp_path, ["sh", "-c", "echo done; exit 7"])
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False
    )
    assert (ended.returncode, ended.stdout) == (7, "done\n"), ended.stderr


@pytest.mark.parametrize("names", TOGETHER, ids=" + ".join)
def test_a_run_does_its_work(names: tuple[str, ...], tmp_path: Path) -> None:
    """It starts a server on a Unix socket and a worker, and stores the outcome and the report."""
    folder = tmp_path / "work"
    folder.mkdir()
    write(folder, _WORK, blocks="1", servers=_SERVER)
    command = [
        *_CACHEMARK,
        "run",
        str(folder / "experiment.toml"),
        "--runs",
        str(folder / "results"),
    ]
    ended = subprocess.run(
        within(names, tmp_path, command),
        env=temporary(tmp_path),
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    (outcome,) = read_outcomes(folder)
    assert outcome.verdict == "VALID"
    assert outcome.measure is not None
    assert sum(op.attempts for op in outcome.measure.operations.values()) == _OPS
    assert list(tmp_path.rglob("cachemark-*")) == []


@pytest.mark.parametrize(
    "surrounding", [row(name) for name, it in SURROUNDINGS.items() if it.signal()]
)
def test_a_signal_does_what_it_should(surrounding: Surrounding, tmp_path: Path) -> None:
    """One that is ignored does nothing, one that is blocked what it always does; trials count."""
    (tmp_path / "work").mkdir()
    path = tmp_path / "work" / write(tmp_path / "work", _WORK, blocks="500", servers=_SERVER)
    command = [*_CACHEMARK, "run", str(path), "--runs", str(tmp_path / "results")]
    inherited = surrounding.signal()
    assert inherited is not None
    other = signal.SIGINT if inherited == signal.SIGTERM else signal.SIGTERM
    ends = {signal.SIGHUP, signal.SIGINT, signal.SIGTERM}
    first = inherited if surrounding.blocked and inherited in ends else other
    with subprocess.Popen(
        surrounding.command(tmp_path, command),
        env=temporary(tmp_path),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stderr is not None
        try:
            _read_until(running, "trial 2 of")
            if surrounding.ignored:
                running.send_signal(inherited)
                _read_until(running, "trial 3 of")
            running.send_signal(first)
            _, said = running.communicate(timeout=_PATIENCE_S)
        finally:
            running.kill()
    assert running.returncode == 130, said
    assert "interrupted" in said
    assert list((tmp_path / "tmp").iterdir()) == []
    assert {outcome.verdict for outcome in read_outcomes(tmp_path)} == {"VALID"}


def _read_until(running: subprocess.Popen[str], text: str) -> None:
    assert running.stderr is not None
    while text not in (line := running.stderr.readline()):
        assert line, f"it ended before {text!r}"


def test_what_it_starts_can_be_asked_to_end(tmp_path: Path) -> None:
    """Servers and workers inherit no signal that is ignored: SIGTERM asks them to end."""
    status = tmp_path / "status"
    server = tmp_path / "server"
    server.write_text(f'#!/bin/sh\ncp /proc/$$/status "{status}"\nexec memcached "$@"\n')
    server.chmod(0o755)
    server_text = f"command:{server} -u root -p {{port}}"
    (tmp_path / "work").mkdir()
    path = (
        tmp_path
        / "work"
        / write(tmp_path / "work", _WORK, blocks="1", servers=f"['{server_text}']")
    )
    command = ["env", "--ignore-signal=TERM", "--ignore-signal=HUP", *_CACHEMARK, "run", str(path)]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    (ignored,) = (
        int(line.split()[1], 16)
        for line in status.read_text(encoding="ascii").splitlines()
        if line.startswith("SigIgn:")
    )
    assert not ignored & (1 << (signal.SIGTERM - 1) | 1 << (signal.SIGHUP - 1))


def test_the_table_plays_every_verb() -> None:
    verbs = {verb for group in VERBS.values() for verb in group}
    assert verbs == {program.arguments[0] for program in PROGRAMS}
