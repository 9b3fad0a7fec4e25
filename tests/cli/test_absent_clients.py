"""A client whose library is missing: the plan leaves it out, and `why` says so before it counts."""

import sys
from pathlib import Path

import pytest

from cachemark.cli import why
from cachemark.model.protocol import PROTOCOL_VERSION
from cachemark.runs.counting.counting import Counted
from tests.cli.in_process import Inside

GONE = "toy is not installed"
WORKER = f"""
import json, sys
ready = {{
    "type": "ready", "protocol": {PROTOCOL_VERSION}, "client": "toy/here", "library": "toy",
    "library_version": "1.0", "language": "toy", "runtime": "toy", "capabilities": [],
    "wires": ["text"], "kinds": ["get", "set"],
}}
for line in sys.stdin:
    if sys.argv[1] == "dies":
        sys.exit(3)
    hello = json.loads(line)["type"] == "hello"
    answer = {{"type": "bye"}}
    if hello and sys.argv[1] == "here":
        answer = ready
    elif hello:
        answer = {{"type": "unsupported", "reason": "{GONE}", "remedy": "install it"}}
    print(json.dumps(answer), flush=True)
    if answer["type"] != "ready":
        break
"""


@pytest.fixture(autouse=True)
def workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of workers whose clients are `toy/here` and `toy/gone`."""
    folder = tmp_path / "workers" / "toy"
    folder.mkdir(parents=True)
    (folder / "worker.py").write_text(WORKER, encoding="utf-8")
    (folder / "worker.toml").write_text(
        f'language = "toy"\n[runtime.toy]\n'
        f'command = [{sys.executable!r}, "worker.py", "{{client}}"]'
        '\n[[client]]\nname = "here"\nruntimes = ["toy"]'
        '\n[[client]]\nname = "dies"\nruntimes = ["toy"]'
        '\n[[client]]\nname = "gone"\nruntimes = ["toy"]\n',
        encoding="utf-8",
    )
    monkeypatch.setenv("CACHEMARK_WORKERS", str(folder.parent))


def test_a_check_shows_progress_and_names_each_reason_once(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "240")
    ended = inside("clients", "--check")
    assert ended.returncode == 0
    assert "asking workers: 1 of 6 have answered" in ended.stderr
    rows = [" ".join(line.split()) for line in ended.stdout.splitlines()]
    assert f"toy/gone – – – – – – threads {GONE}: install it" in rows
    assert any(row.startswith("toy/dies – – – – – – threads failed: exited") for row in rows)


def test_a_dry_run_does_not_count_an_absent_client(inside: Inside) -> None:
    words = ("run", "quick", "--client", "native", "--client", "toy/gone", "--dry-run")
    words += ("--server", "embedded", "--set", "twice=", "--blocks", "3")
    ended = inside(*words, "--set", "design=trials")
    assert ended.returncode == 0, ended.stderr
    assert f"not played: toy/gone: {GONE}" in " ".join(ended.stderr.split())
    assert "quick: 3 trials, 3 blocks" in ended.stderr
    assert "toy/gone" not in ended.stdout


def test_a_plan_without_any_client_has_no_trials(inside: Inside) -> None:
    ended = inside("run", "quick", "--client", "toy/gone", "--dry-run", "--set", "twice=")
    assert (ended.returncode, ended.stdout) == (0, "")
    assert "quick: 0 trials" in ended.stderr


@pytest.mark.parametrize(
    "clients", [["toy/gone", "native", "toy/here"], ["native", "toy/gone"], ["toy/gone"]]
)
def test_why_counts_nothing_without_a_pair(inside: Inside, clients: list[str]) -> None:
    ended = inside("why", *(word for name in clients for word in ("--client", name)))
    assert ended.returncode == 2
    assert ended.stderr.split() == f"cachemark: toy/gone: {GONE} install it".split()
    assert not ended.stdout


def test_why_names_an_absent_client_before_it_counts(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[str] = []

    def count(plan: why.CountingPlan, *_: object) -> Counted:
        counted.extend(client.text for client in plan.clients)
        return Counted([], [], [])

    monkeypatch.setattr(why, "count", count)
    ended = inside("why", "--client", "native", "--client", "toy/gone", "--client", "toy/here")
    assert ended.returncode == 1
    assert counted == ["native", "toy/here"]
    assert f"not counted: toy/gone: {GONE}; install it" in ended.stderr
    assert f"toy/gone was not counted: {GONE}." in " ".join(ended.stdout.split())


def test_a_plan_names_the_server_that_cannot_be_started(inside: Inside, tmp_path: Path) -> None:
    (no_program := tmp_path / "notes").touch()
    for path, reason in (
        (Path("/nowhere"), "is not on this machine"),
        (no_program, "cannot be exec"),
    ):
        server = f"memcached:binary={path}"
        ended = inside("run", "--dry-run", "--client", "native", "--server", server)
        assert f"not played: {server}: cannot be started: {path} {reason}" in ended.stderr
        assert f"→ binary={path} must be a program" in ended.stderr
