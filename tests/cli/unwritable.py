"""Outputs that cannot be written, and what a program must say of them."""

import multiprocessing
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from multiprocessing.context import ForkServerContext
from pathlib import Path
from pkgutil import walk_packages

import pytest

from cachemark.cli import main
from cachemark.runs.storage.archive import export_run
from tests.builders.stored_runs import kept, made_header, trials

HOSTS = """
tls = "certs"
coordinator = { address = "127.0.0.1", port = 0 }
hosts = [{ name = "a", roles = ["server", "client"], address = "127.0.0.1", start = "here" }]
"""
SENTENCE_LINES = 2


def full() -> int:
    return os.open("/dev/full", os.O_WRONLY)


def broken_pipe() -> int:
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def unwritable() -> int:
    return os.open(os.devnull, os.O_RDONLY)


OUTPUTS: dict[str, Callable[[], int]] = {
    "full": full, "pipe": broken_pipe, "closed": unwritable,
}  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    outcomes = [*trials("a", 500, 2), *trials("b", 400, 2)]
    run = kept(folder / "results", made_header("2026-made"), outcomes)
    export_run(run, folder / "run.zip")
    (folder / "hosts.toml").write_text(HOSTS, encoding="utf-8")
    return folder


def ended(command: list[str], folder: Path, stdout: int, **environment: str) -> tuple[int, str]:
    """The exit status of a program and what it printed on stderr."""
    done = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env={**os.environ, **environment},
        check=False,
    )
    return done.returncode, done.stderr.decode("utf-8", "replace")


def refused(command: list[str], folder: Path, output: Callable[[], int]) -> None:
    """It says in a sentence that it cannot write."""
    stdout = output()
    try:
        status, said = ended(command, folder, stdout)
    finally:
        os.close(stdout)
    check_refusal(status, said)


def check_refusal(status: int, said: str) -> None:
    assert status in (1, 2), said
    assert said.strip()
    assert len(error_lines(said)) <= SENTENCE_LINES, said
    assert "Traceback" not in said
    assert "panicked" not in said


def refused_inside(arguments: list[str], folder: Path, output: Callable[[], int]) -> None:
    """The same of `cachemark`, in a child that need not import it again."""
    check_refusal(*ended_inside(partial(main, arguments), folder, output))


def nobody() -> int:
    return os.open(os.devnull, os.O_WRONLY)


def cachemark(arguments: list[str], folder: Path) -> tuple[int, str]:
    """The exit status of `cachemark` in such a child, and what it printed on stderr."""
    return ended_inside(partial(main, arguments), folder, nobody)


def ended_inside(
    verb: Callable[[], None], folder: Path, output: Callable[[], int] = nobody
) -> tuple[int, str]:
    """How a child ended that only runs this, its stdout being `output`, and its stderr.

    It is forked from a server of one thread that has imported the verbs: a fork of this process,
    which has threads, may stand still. The arguments are found by their names in modules.
    """
    with tempfile.TemporaryDirectory() as own:
        said = Path(own, "stderr")
        arguments = (verb, folder, output, said, dict(os.environ))
        child = _forks().Process(target=_only_run, args=arguments)
        child.start()
        child.join()
        assert child.exitcode is not None
        return child.exitcode, said.read_text("utf-8", "replace")


@cache
def _forks() -> ForkServerContext:
    """The server imports each verb once: they import what they need when they are called."""
    forks = multiprocessing.get_context("forkserver")
    packages = [import_module(name) for name in ("cachemark.cli", "cachemark.report")]
    modules = [
        module.name
        for package in packages
        for module in walk_packages(package.__path__, f"{package.__name__}.")
    ]
    forks.set_forkserver_preload([*modules, "pytest"])
    return forks


def _only_run(
    verb: Callable[[], None],
    folder: Path,
    output: Callable[[], int],
    said: Path,
    environment: dict[str, str],
) -> None:
    """Run it on these streams, and exit as a program does. Never returns."""
    try:
        stderr = os.open(said, os.O_WRONLY | os.O_CREAT)
        for number, stream in enumerate((os.open(os.devnull, os.O_RDONLY), output(), stderr)):
            os.dup2(stream, number)
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        errors = os.fdopen(2, "w", closefd=False, errors="backslashreplace")
        sys.stderr = sys.__stderr__ = errors  # type: ignore[misc]
        verb()
    except SystemExit as ended:
        os._exit(ended.code if isinstance(ended.code, int) else 99)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(99)


def error_lines(said: str) -> list[str]:
    """The error, without what a verb prints on stderr before it."""
    lines = said.splitlines()
    first = (at for at, line in enumerate(lines) if line.startswith("cachemark"))
    return lines[next(first, 0) :]


def copy_of(store: Path, tmp_path: Path) -> Path:
    subprocess.run(["cp", "-r", f"{store}/.", tmp_path], check=True)
    return tmp_path
