"""All tests share the real CLI in a folder of its own, and leave no process behind."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.cli import in_process
from tests.cli.in_process import COLOURS

# The fixture is every test's.
inside = in_process.inside
ROOT = Path(__file__).resolve().parent.parent
CLIENTS = ROOT / "tests" / "workers"
# A test that is slow on a busy machine has not failed.
settings.register_profile("cachemark", deadline=None)
settings.load_profile("cachemark")
_LONGEST_ID = 100
# Long groups that would otherwise begin late and end alone. The clients' groups begin early.
BEGINS_FIRST = (
    "agents", "test_lying_workers.py", "test_planted_languages.py", "test_surroundings.py",
    "test_planted.py", "test_probe.py",
)  # fmt: skip
_ENDS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
Cli = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """Run `cachemark` with arguments; results land in the test's own folder."""
    return cli_in(tmp_path)


def cli_in(folder: Path) -> Cli:
    """Run `cachemark` with arguments in a folder."""
    # A developer's wish for colours would put escape sequences into the texts that tests compare.
    environment = {name: os.environ[name] for name in os.environ if name not in COLOURS}

    def run(*arguments: str, timeout_s: float = 900) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "cachemark", *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            env={**environment, "COLUMNS": "120"},
        )

    return run


def bad_worker(name: str) -> str:
    """The client of a miniature bad worker, as an experiment names it."""
    return f"command:{sys.executable} {ROOT / 'tests' / 'bad_workers' / name}.py"


def pytest_configure(config: pytest.Config) -> None:
    """`make test` lets the JVMs compile quickly instead of well; `make test-all` does not."""
    if config.option.markexpr == "not slow":
        os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
    # A worker that hangs can be asked where: worker_driver.stacks does.
    os.environ.setdefault("PYTHONFAULTHANDLER", "1")
    if not config.getoption("numprocesses", None):  # a process that plays tests
        _give_children_signals()


def pytest_make_parametrize_id(val: object) -> str | None:
    """A short name for a long parameter: all processes tell each other the names."""
    if isinstance(val, str | bytes) and len(val) > _LONGEST_ID:
        return f"{val[:_LONGEST_ID]!r} and so on, {len(val)} long"
    return None


def _give_children_signals() -> None:
    """Programs that tests start begin as in a terminal, however the tests themselves were started.

    A signal that is ignored here (as under nohup, or in a shell's background) still does nothing
    here: its handler does nothing. But a program that is started does not inherit a handler.
    """
    for number in _ENDS:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, _do_nothing)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)


def _do_nothing(_number: int, _frame: object) -> None:
    pass


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the tests that passed only when the Makefile ran them once more, and keep the names."""
    config = terminalreporter.config
    if config.getoption("last_failed_no_failures", "all") != "none":
        _keep_skips(terminalreporter)
        return
    passed = terminalreporter.getreports("passed")
    names = sorted({dict(report.user_properties)["name"] for report in passed})
    path = config.rootpath / ".pytest_cache" / "second-tries"
    path.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    terminalreporter.section("passed only at the second try")
    terminalreporter.write_line("\n".join(names) or "none")


def _keep_skips(terminalreporter: pytest.TerminalReporter) -> None:
    """Write why tests were skipped: tools/skips.py counts them after a whole run."""
    places = [report.longrepr for report in terminalreporter.getreports("skipped")]
    reasons = sorted(str(place[2]).removeprefix("Skipped: ") for place in places)
    path = terminalreporter.config.rootpath / ".pytest_cache" / "skips"
    if path.parent.is_dir():
        path.write_text(json.dumps(reasons, indent=0), encoding="utf-8")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect all tests without looking for garbage among them; later, look only among new values.

    Each of the ten processes keeps all modules and tests until it ends.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A slow test says why, and begins first. Tests of a file stay in one process."""
    for item in items:
        # pytest-xdist appends the group to the name; both may contain an @.
        item.user_properties.append(("name", item.nodeid))
        for mark in item.iter_markers("slow"):
            if not (mark.args and isinstance(mark.args[0], str) and not mark.kwargs):
                raise pytest.UsageError(f"{item.nodeid}: `slow` without a reason")
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.path.name))
    # Otherwise a process might begin the longest test when the others have ended. Tests of clients
    # mostly wait, and the others mostly compute: mixed, they leave no core idle.
    waits: dict[str, bool] = {}
    for item in items:
        waits.setdefault(_group(item), item.path.parent == CLIENTS)
    begins = {**_positions(waits, True), **_positions(waits, False)}
    begins |= dict.fromkeys(BEGINS_FIRST, -1.0)
    items.sort(key=lambda item: (item.get_closest_marker("slow") is None, begins[_group(item)]))


def _group(item: pytest.Item) -> str:
    mark = item.get_closest_marker("xdist_group")
    assert mark is not None
    return str(mark.args[0])


def _positions(waits: dict[str, bool], kind: bool) -> dict[str, float]:
    """Where each group of one kind begins, from 0 to 1."""
    groups = [group for group in waits if waits[group] == kind]
    return {group: number / len(groups) for number, group in enumerate(groups)}
