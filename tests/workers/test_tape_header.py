"""docs/tape.md and every reader agree on the header: each field is where the table says."""

import re
import struct
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from cachemark.endpoints.clients import Client
from cachemark.endpoints.worker import Worker
from cachemark.model.protocol import Done, Failure, Prepare, Ready, RunRequest, Unsupported
from tests.conftest import ROOT
from tests.workers import worker_driver
from tests.workers.test_python_tape import FIELDS, GET, INCR, MGET, SET, made

# In process, so that there is nothing but the reader to go wrong. `native/store` is the engine's.
_NAMES = [name for name in worker_driver.known() if name.endswith("/null")]
_READERS = worker_driver.clients([*_NAMES, "native/store"])
_FAR = 1 << 40
_HEADER_BYTES = 184

# A bad value of each field, and the offsets that a refusal of it may name. A count of records is
# seen to be wrong either by itself or when its section does not fit into the file.
_BAD: dict[str, tuple[int, set[int]]] = {
    "version": (3, {8}),
    "header_bytes": (176, {12}),
    "file_bytes": (1, {16}),
    "key_count": (0, {32}),
    "prefill_count": (5, {40}),
    "op_count": (0, {48}),
    "run_count": (_FAR, {56, 128}),
    "pool_bytes": (_FAR, {64, 112}),
    "period_ns": (0, {72}),
    "key_offsets_at": (_FAR, {80}),
    "key_bytes_at": (_FAR, {88}),
    "key_bytes": (_FAR, {88, 96}),
    "lengths_at": (8, {104}),
    "pool_at": (_FAR, {112}),
    "ops_at": (_HEADER_BYTES + 4, {120}),
    "runs_at": (_FAR, {128}),
    "times_at": (_FAR, {136}),
    "exptime_s": (1 << 32, {144}),
    "flags": (2, {152}),
    "group": (3, {160}),
    "counter_count": (5, {168}),
    "thinks_at": (_FAR, {176}),
}


def documented() -> dict[str, tuple[int, str]]:
    """The header's table in docs/tape.md: the offset and the type of each field."""
    text = (ROOT / "docs" / "tape.md").read_text(encoding="utf-8")
    table = text.split("## Header")[1].split("## ")[0]
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \| (\w+) \|", table, re.MULTILINE)
    return {name: (int(offset), type_) for offset, type_, name in rows}


def full(*, scheduled: bool, thinking: bool = False) -> bytes:
    """A tape on which each field of the header has a value of its own."""
    ops = [
        (GET, 0, 1, 0, 0, 0), (MGET, 0, 2, 0, 0, 0),
        (SET, 0, 1, 0, 5, 0), (SET, 0, 1, 1, 6, 0),
        (GET, 0, 1, 2, 0, 0), (GET, 0, 1, 2, 0, 0),
        (SET, 0, 1, 0, 5, 0), (INCR, 0, 1, 3, 1, 0),
    ]  # fmt: skip
    extra: dict[str, Any] = {"seed": 7, "prefill": 2, "exptime": 60, "flags": 1, "group": 2}
    if not scheduled and not thinking:
        return made(ops, **extra)
    field = "times_at" if scheduled else "thinks_at"
    at = len(made(ops))
    extra |= {field: at, "file_bytes": at + 8 * len(ops)}
    if scheduled:
        extra["period"] = 20_000_000
    numbers = [2_000_000 * j for j in range(len(ops))]
    return made(ops, **extra) + struct.pack(f"<{len(ops)}Q", *numbers)


@pytest.fixture(scope="module", params=_READERS)
def worker(request: Any) -> Generator[Worker]:
    client: Client = request.param
    with worker_driver.started(client) as (worker, _):
        yield worker


def prepare(worker: Worker, path: Path, **fields: Any) -> object:
    return worker_driver.ask(worker, Prepare(servers=[], wire="none", tape=str(path), **fields))


def written(folder: Path, data: bytes) -> Path:
    path = folder / "tape"
    path.write_bytes(data)
    return path


def test_the_document_has_every_field_once_and_in_order() -> None:
    fields = documented()
    assert list(fields)[3:] == ["file_bytes", "seed", *list(fields)[5:]]
    assert set(fields) == {"magic", "seed", *_BAD}
    at = 0
    for offset, type_ in fields.values():
        assert offset == at
        at += {"8 bytes": 8, "u32": 4, "u64": 8}[type_]
    assert at == _HEADER_BYTES
    assert len(FIELDS) == len(fields) - 3


@pytest.mark.parametrize("name", _BAD)
def test_a_bad_value_is_refused_at_the_documents_offset(
    name: str, worker: Worker, tmp_path: Path
) -> None:
    value, offsets = _BAD[name]
    data = bytearray(full(scheduled=name != "thinks_at"))
    offset, type_ = documented()[name]
    struct.pack_into("<I" if type_ == "u32" else "<Q", data, offset, value)
    answer = prepare(worker, written(tmp_path, bytes(data)))
    assert isinstance(answer, Failure), answer
    assert answer.kind == "tape", answer
    assert any(f"(at byte {offset})" in answer.text for offset in offsets), answer.text


def test_another_magic_is_refused(worker: Worker, tmp_path: Path) -> None:
    answer = prepare(worker, written(tmp_path, b"X" + full(scheduled=True)[1:]))
    assert isinstance(answer, Failure), answer
    assert answer.kind == "tape"
    assert "(at byte 0)" in answer.text


def test_think_times_are_checked_and_played_or_refused(worker: Worker, tmp_path: Path) -> None:
    """A valid tape that a worker cannot play is `unsupported`; that is no fault of the tape."""
    answer = prepare(worker, written(tmp_path, full(scheduled=False, thinking=True)))
    if isinstance(answer, Ready):
        assert "think" in worker.hello(worker_driver.ANSWER_S).capabilities
    else:
        assert isinstance(answer, Unsupported), answer
        assert answer.reason, answer
    both = bytearray(full(scheduled=True))
    struct.pack_into("<Q", both, documented()["thinks_at"][0], len(both) - 64)
    answer = prepare(worker, written(tmp_path, bytes(both)))
    assert isinstance(answer, Failure), answer
    assert "(at byte 176)" in answer.text


def test_the_header_is_obeyed(worker: Worker, tmp_path: Path) -> None:
    """A worker plays by the header's fields: keys stored, groups, counters, runs."""
    path = written(tmp_path, full(scheduled=False))
    assert isinstance(prepare(worker, path), Ready)
    assert worker_driver.play(worker, RunRequest(phase="prefill")).operations["set"].ok == 2
    done = worker_driver.play(worker, RunRequest(phase="measure", ops=8)).operations
    assert {kind: op.attempts for kind, op in done.items()} == {
        "get": 3, "mget": 1, "set": 3, "incr": 1
    }  # fmt: skip
    assert (done["get"].hits, done["get"].misses) == (1, 2)
    assert (done["mget"].hits, done["mget"].misses) == (2, 0)
    assert (done["incr"].hits, done["incr"].misses) == (0, 1)
    # Every second group is another worker's.
    assert isinstance(prepare(worker, path, segment=(1, 2)), Ready)
    assert worker_driver.play(worker, RunRequest(phase="prefill")).operations["set"].ok == 1
    done = worker_driver.play(worker, RunRequest(phase="measure", ops=4)).operations
    assert {kind: op.attempts for kind, op in done.items()} == {"set": 3, "incr": 1}


def test_the_schedule_and_its_period_are_obeyed(worker: Worker, tmp_path: Path) -> None:
    """Twelve operations are a pass and a half: the last is due 26 ms after the start."""
    answer = prepare(worker, written(tmp_path, full(scheduled=True)))
    if worker.name == "native/store":
        assert isinstance(answer, Unsupported), answer
        return
    assert isinstance(answer, Ready), answer
    worker_driver.play(worker, RunRequest(phase="prefill"))
    worker.send(RunRequest(phase="measure", ops=12))
    done = worker_driver.finish(worker)
    assert isinstance(done, Done), done
    assert done.send_lag is not None
    assert sum(op.attempts for op in done.operations.values()) == 12
    assert done.elapsed_ns >= 26_000_000
