"""Plants bugs into copies of workers that are right, for tests of the cases that must find them."""

import re
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from cachemark.checks.conformance import ConformanceResult, WorkerDriver, checks, find
from cachemark.endpoints.clients import Client, ClientSpec, registry
from cachemark.host import process
from tests.conftest import ROOT

WORKERS = ROOT / "workers"


class Bug(msgspec.Struct, frozen=True, kw_only=True):
    """A text of a file that is replaced, and what the case says of it: a regular expression."""

    right: str
    wrong: str
    case: str
    says: str


class Worker(NamedTuple):
    """A copy of a worker, the file of it that gets a bug, and the command that starts it."""

    folder: Path
    file: str
    command: list[str]


def python_worker(folder: Path, file: str) -> Worker:
    """A copy of the Python worker, with a library."""
    built = registry(process.binary_path())["python/pymemcache"]
    if missing := built.missing():
        pytest.skip(f"{missing}: {built.setup}")
    left_out: Any = shutil.ignore_patterns(".venv*", "__pycache__")
    copied = shutil.copytree(WORKERS / "python", folder / "python", ignore=left_out)
    return Worker(copied, file, [built.command[0], str(copied / "worker.py"), *built.command[2:]])


def find_in(worker: Worker, case: str) -> ConformanceResult:
    """The result of a case on the worker's first protocol."""
    client = Client(id="planted", language="python", command=worker.command)
    with WorkerDriver(ClientSpec(text=client.id, client=client), worker.folder) as driver:
        return next(iter(find(driver, case, checks()[case])))


def replace(path: Path, right: str, wrong: str) -> None:
    """Replace the text, which must be there."""
    source = path.read_text("utf-8")
    assert right in source
    path.write_text(source.replace(right, wrong), encoding="utf-8")


def check_found(worker: Worker, bug: Bug) -> None:
    """Plant the bug: its case must find it, and say what is wrong."""
    replace(worker.folder / worker.file, bug.right, bug.wrong)
    result = find_in(worker, bug.case)
    assert result.state == "failed", result
    assert re.search(bug.says, result.text), result.text
