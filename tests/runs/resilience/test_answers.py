"""Each answer is judged against what the server can have stored when it was asked."""

import struct
from pathlib import Path

import pytest

from cachemark.analysis.resilience.answers import (
    CallAnswer,
    DataLoss,
    describe_wrong,
    judged_answers,
)
from cachemark.model.call_log import Call, CallOutcome, TapeData, read_calls
from cachemark.model.errors import TrialError
from cachemark.runs.resilience.play import KEYS, write_cell_tape


@pytest.fixture(scope="module")
def tape(tmp_path_factory: pytest.TempPathFactory) -> TapeData:
    return write_cell_tape(tmp_path_factory.mktemp("tape") / "tape")


def read(begin_ns: int, end_ns: int, length: int, outcome: CallOutcome = "ok") -> Call:
    return _call(begin_ns, end_ns, length, outcome, is_write=False)


def write(begin_ns: int, end_ns: int, length: int, outcome: CallOutcome = "ok") -> Call:
    return _call(begin_ns, end_ns, length, outcome, is_write=True)


def _call(begin_ns: int, end_ns: int, length: int, outcome: CallOutcome, *, is_write: bool) -> Call:
    return Call(
        begin_ns=begin_ns,
        end_ns=end_ns,
        record=0,
        key=0,
        is_write=is_write,
        length=length,
        caller=0,
        outcome=outcome,
    )


def last_answer(tape: TapeData, calls: list[Call], loss: DataLoss | None = None) -> CallAnswer:
    return judged_answers(calls, tape, loss)[-1]


def test_the_length_of_a_value_says_which_write_it_is(tape: TapeData) -> None:
    first = tape.lengths[0]
    assert last_answer(tape, [read(10, 20, first)]) == "right"
    assert last_answer(tape, [write(1, 2, 5), read(10, 20, 5)]) == "right"
    assert last_answer(tape, [write(1, 2, 5), read(10, 20, first)]) == "stale"
    assert last_answer(tape, [write(1, 2, 5), read(10, 20, 7)]) == "wrong"


def test_an_unfinished_write_may_or_may_not_be_seen(tape: TapeData) -> None:
    first = tape.lengths[0]
    for seen in (first, 5):
        assert last_answer(tape, [write(5, 15, 5), read(10, 20, seen)]) == "right"
    assert last_answer(tape, [write(25, 30, 5), read(10, 20, 5)]) == "wrong", "not begun yet"


def test_a_failed_write_may_take_effect_later(tape: TapeData) -> None:
    calls = [write(1, 2, 5, "timeout"), write(3, 4, 6), read(10, 20, 5)]
    assert last_answer(tape, calls) == "right"
    assert last_answer(tape, [*calls[:2], read(10, 20, tape.lengths[0])]) == "stale"


def test_a_miss_is_right_only_for_a_lost_key(tape: TapeData) -> None:
    miss = read(10, 20, 0, "miss")
    assert last_answer(tape, [miss]) == "false miss"
    assert last_answer(tape, [miss], DataLoss(from_ns=15)) == "right"
    assert last_answer(tape, [miss], DataLoss(from_ns=25)) == "false miss"
    stored_again = [write(16, 17, 5), read(20, 30, 0, "miss")]
    assert last_answer(tape, stored_again, DataLoss(from_ns=15)) == "false miss"
    assert last_answer(tape, stored_again, DataLoss(from_ns=15, keys_move=True)) == "right"
    assert last_answer(tape, [miss], DataLoss(from_ns=25, keys_move=True)) == "false miss"


def test_failures_are_what_they_are(tape: TapeData) -> None:
    for outcome in ("timeout", "connection", "server", "client", "protocol", "wrong"):
        assert last_answer(tape, [read(1, 2, 0, outcome)]) == outcome


def test_a_wrong_value_is_described(tape: TapeData) -> None:
    is_write, key, _ = tape.record(0)
    assert not is_write
    right = tape.value(key, tape.lengths[key])
    other = (key + 1) % KEYS
    of_other = tape.value(other, tape.lengths[other])
    assert describe_wrong(tape, 0, of_other).endswith(tape.key_name(other))
    assert describe_wrong(tape, 0, right[:-9]).startswith("truncated")
    assert "9 bytes too many" in describe_wrong(tape, 0, right + b"\r\nEND\r\n..")
    assert describe_wrong(tape, 0, b"?" * 50) == "no value that was ever stored"


def test_every_write_of_a_key_has_its_own_length(tape: TapeData) -> None:
    """The judge relies on this: the length of a value says which write it is."""
    seen = {(key, length) for key, length in enumerate(tape.lengths)}
    for is_write, key, length in (tape.record(number) for number in range(8000)):
        if is_write:
            assert (key, length) not in seen
            seen.add((key, length))
            assert tape.value(key, length)
    assert len(seen) > len(tape.lengths) + 700


def test_every_version_of_a_key_has_its_keys_length(tape: TapeData) -> None:
    """The judge relies on this: values of one length differ between keys."""
    values = {tape.value(key, 100) for key in range(KEYS)}
    assert len(values) == KEYS


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"CMCALLS\0" + struct.pack("<2I", 2, 32),
        b"CMCALLS\0" + struct.pack("<2I", 1, 32) + bytes(31),
        b"CMCALLS\0" + struct.pack("<2I", 1, 32) + struct.pack("<QQIIHB5x", 0, 0, 1 << 31, 0, 0, 0),
        b"CMCALLS\0" + struct.pack("<2I", 1, 32) + struct.pack("<QQIIHB5x", 0, 0, 0, 0, 0, 99),
    ],
)
def test_a_malformed_log_is_an_error(data: bytes, tape: TapeData, tmp_path: Path) -> None:
    path = tmp_path / "calls"
    path.write_bytes(data)
    with pytest.raises(TrialError, match="call log"):
        read_calls(path, tape)
    with pytest.raises(TrialError, match="no call log"):
        read_calls(tmp_path / "nothing", tape)
