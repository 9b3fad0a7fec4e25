"""The Python worker's reader, on tapes made by hand: what it reads, and what it refuses."""

import importlib
import struct
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram

from tests.conftest import ROOT

GET, MGET, SET, DELETE, VERSION, MSET, CAS, INCR = 1, 3, 4, 7, 10, 11, 14, 15
POOL = bytes(range(65, 91)) * 4
FIELDS = ("file_bytes", "seed", "keys", "prefill", "ops", "runs", "pool", "period", "offsets_at",
          "keys_at", "key_bytes", "lengths_at", "pool_at", "ops_at", "runs_at", "times_at",
          "exptime", "flags", "group", "counters", "thinks_at")  # fmt: skip


@pytest.fixture(scope="module")
def tape() -> Generator[Any]:
    """The worker's module; the worker's folder is on the path only as long as it is used."""
    sys.path.insert(0, str(ROOT / "workers" / "python"))
    yield importlib.import_module("tape")
    sys.path.pop(0)


def lane(read: Any, number: int = 0, lanes: int = 1) -> list[Any]:
    """The operations of a lane, with the tape's own keys."""
    made = importlib.import_module("operation").Operations(read, read.keys)
    return list(made.lane(number, lanes)())


def made(
    ops: list[tuple[int, ...]],
    keys: tuple[bytes, ...] = (b"a", b"bb", b"c", b"n"),
    lengths: tuple[int, ...] = (5, 6, 7, 10),
    runs: tuple[int, ...] = (0, 1, 2),
    **head: int,
) -> bytes:
    """A tape; its last key is a counter unless told otherwise."""
    offsets = [sum(map(len, keys[:k])) for k in range(len(keys) + 1)]
    sections = {
        "offsets_at": struct.pack(f"<{len(offsets)}I", *offsets),
        "keys_at": b"".join(keys),
        "lengths_at": struct.pack(f"<{len(keys)}I", *lengths),
        "pool_at": POOL,
        "ops_at": b"".join(struct.pack("<BBHIII", *op) for op in ops),
        "runs_at": struct.pack(f"<{len(runs)}I", *runs),
    }
    body = bytearray()
    fields: dict[str, int] = dict.fromkeys(FIELDS, 0)
    for name, section in sections.items():
        fields[name] = 184 + len(body)
        body += section + bytes(-len(section) % 8)
    counts = {"keys": len(keys), "prefill": len(keys), "ops": len(ops), "runs": len(runs),
              "pool": len(POOL), "key_bytes": offsets[-1], "group": 1, "counters": 1}  # fmt: skip
    fields |= counts | {"file_bytes": 184 + len(body)} | head
    return struct.pack("<8s2I21Q", b"CMTAPE", 2, 184, *fields.values()) + body


def written(folder: Path, data: bytes) -> Path:
    path = folder / "tape"
    path.write_bytes(data)
    return path


def test_a_group_stays_in_one_lane(tape: Any, tmp_path: Path) -> None:
    ops = [(GET, 0, 1, j % 3, 0, 0) for j in range(12)]
    read = tape.Tape(written(tmp_path, made(ops, group=2)))
    lanes = [[op.number for op in lane(read, t, 4)] for t in range(4)]
    assert lanes == [[0, 1, 8, 9], [2, 3, 10, 11], [4, 5], [6, 7]]
    assert lane(read, 7, 8) == []


def test_counters_are_stored_as_digits_and_changed_by_an_amount(tape: Any, tmp_path: Path) -> None:
    ops = [(INCR, 0, 1, 3, 1_000_000, 0), (INCR + 1, 1, 1, 3, 2, 0), (DELETE, 0, 1, 3, 0, 0)]
    read = tape.Tape(written(tmp_path, made(ops)))
    assert read.kinds == {"incr", "decr_noreply", "delete"}
    operations = importlib.import_module("operation").Operations(read, read.keys)
    stored = [op.value for op in operations.prefill(0, 1)]
    assert stored[3] == b"1000000000"
    assert stored[0] == read.value(0, 5)
    assert [op.amount for op in lane(read)] == [1_000_000, 2, 0]
    assert [op.ok_code for op in lane(read)] == [1, 0, 1]


def test_cas_names_the_value_that_it_writes(tape: Any, tmp_path: Path) -> None:
    read = tape.Tape(written(tmp_path, made([(CAS, 0, 1, 1, 9, 60)])))
    (op,) = lane(read)
    assert (op.kind, op.key, op.value, op.exptime_s) == ("cas", b"bb", read.value(1, 9), 60)


READ = (GET, 0, 1, 0, 0, 0)
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "version 1": ({}, "version"),
    "half a group": ({"ops": [READ] * 3, "group": 2}, "groups"),
    "no group": ({"group": 0}, "groups"),
    "more counters than keys": ({"counters": 5}, "counters"),
    "a counter of another length": ({"counters": 2}, "counter"),
    "think times outside": ({"thinks_at": 1 << 40}, "outside the file"),
    "times without a period": ({"times_at": 184}, "period"),
    "append": ({"ops": [(12, 0, 1, 0, 0, 0)]}, "verb 12"),
    "prepend": ({"ops": [(13, 0, 1, 0, 0, 0)]}, "verb 13"),
    "beyond the verbs": ({"ops": [(17, 0, 1, 0, 0, 0)]}, "verb 17"),
    "a get of a counter": ({"ops": [(GET, 0, 1, 3, 0, 0)]}, "get of a counter"),
    "a cas of a counter": ({"ops": [(CAS, 0, 1, 3, 10, 0)]}, "cas of a counter"),
    "a run with a counter": (
        {"ops": [(MGET, 0, 2, 0, 0, 0)], "runs": (0, 3)},
        "mget of a counter",
    ),
    "an incr of another key": ({"ops": [(INCR, 0, 1, 0, 1, 0)]}, "counter's verb"),
    "a cas without a reply": ({"ops": [(CAS, 1, 1, 0, 5, 0)]}, "flags"),
    "an unknown key": ({"ops": [(INCR, 0, 1, 4, 1, 0)]}, "unknown key"),
    "a version with a key": ({"ops": [(VERSION, 0, 1, 0, 0, 0)]}, "run"),
    "a run outside its table": ({"ops": [(MSET, 0, 4, 0, 0, 0)]}, "unknown key"),
    "a value beyond the pool": ({"ops": [(SET, 0, 1, 0, 105, 0)]}, "beyond the pool"),
    "a key with a space": ({"keys": (b"a", b"b ", b"c", b"n")}, "white space"),
    "an empty key": ({"keys": (b"a", b"", b"c", b"n")}, "key of a wrong length"),
    "a section outside": ({"ops_at": 1 << 40}, "outside"),
    "a section askew": ({"ops_at": 188}, "outside"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_breaks_a_rule_is_refused(name: str, tape: Any, tmp_path: Path) -> None:
    fault, reason = REFUSED[name]
    change: dict[str, Any] = {"ops": [READ], **fault}
    data = bytearray(made(**change))
    if name == "version 1":
        data[8] = 1
    with pytest.raises(tape.TapeError, match=reason):
        tape.Tape(written(tmp_path, bytes(data)))


def test_the_same_tape_without_the_fault_is_read(tape: Any, tmp_path: Path) -> None:
    ops = [READ, (VERSION, 0, 0, 0, 0, 0), (MGET, 0, 2, 1, 0, 0), (MSET, 1, 3, 0, 0, 0)]
    read = tape.Tape(written(tmp_path, made(ops, group=2)))
    assert [op.kind for op in lane(read)] == [
        "get", "version", "mget", "mset_noreply"
    ]  # fmt: skip


def test_times_are_counted_in_the_buckets_of_hdrhistogram(tape: Any) -> None:
    assert tape  # its folder is on the path
    edges = [2**power + apart for power in range(37) for apart in (-1, 0, 1)]
    times = [*edges, 1999, 12_345_678, 5_000_000_000, 99_999_999_999, 150_000_000_000]
    expected = HdrHistogram(1, 100_000_000_000, 3)
    for ns in times:
        expected.record_value(min(max(ns, 1), 100_000_000_000))
    encode = importlib.import_module("histogram").encode
    assert encode(times) == expected.encode().decode()
    assert encode([]) is None
