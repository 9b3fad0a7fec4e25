"""The case that holds what is sent against the tape: reads three protocols alike, and can fail."""

import struct
from pathlib import Path

import msgspec
import pytest

from cachemark.checks.conformance.requests import Command, NotARequest, RequestReader
from cachemark.checks.conformance.tape_values import tape_commands
from cachemark.checks.conformance.traffic import check_commands
from cachemark.checks.conformance.worker_driver import CaseFailedError
from tests.workers import worker_driver


def binary(opcode: int, key: bytes, extras: bytes = b"", value: bytes = b"", cas: int = 0) -> bytes:
    body = extras + key + value
    head = (0x80, opcode, len(key), len(extras), 0, 0, len(body), 7, cas)
    return struct.pack(">BBHBBHIIQ", *head) + body


STORE = struct.pack(">II", 0, 60)
STEP = struct.pack(">QQI", 3, 0, 0xFFFFFFFF)
EXPIRY = struct.pack(">I", 60)
SET = Command(verb="set", key=b"k", exptime_s=60, value=b"a\r\nb")
# The same command as text, meta and binary.
ALIKE: dict[str, tuple[Command, tuple[bytes, ...]]] = {
    "get": (
        Command(verb="get", key=b"k"),
        (b"get k\r\n", b"gets k\r\n", b"mg k v f c\r\n", binary(0x00, b"k"), binary(0x0C, b"k")),
    ),
    "set": (
        SET,
        (
            b"set k 0 60 4\r\na\r\nb\r\n",
            b"ms k 4 T60 F0\r\na\r\nb\r\n",
            binary(0x01, b"k", STORE, b"a\r\nb"),
        ),
    ),
    "set without a reply": (
        msgspec.structs.replace(SET, quiet=True),
        (
            b"set k 0 60 4 noreply\r\na\r\nb\r\n",
            b"ms k 4 q T60\r\na\r\nb\r\n",
            binary(0x11, b"k", STORE, b"a\r\nb"),
        ),
    ),
    "add": (
        msgspec.structs.replace(SET, verb="add"),
        (
            b"add k 0 60 4\r\na\r\nb\r\n",
            b"ms k 4 ME T60\r\na\r\nb\r\n",
            binary(0x02, b"k", STORE, b"a\r\nb"),
        ),
    ),
    "cas": (
        msgspec.structs.replace(SET, verb="cas"),
        (
            b"cas k 0 60 4 9\r\na\r\nb\r\n",
            b"ms k 4 C9 T60\r\na\r\nb\r\n",
            binary(0x01, b"k", STORE, b"a\r\nb", cas=9),
            binary(0x03, b"k", STORE, b"a\r\nb", cas=9),  # libmemcached's
        ),
    ),
    "delete": (Command(verb="delete", key=b"k"), (b"delete k\r\n", b"md k\r\n", binary(4, b"k"))),
    "touch": (
        Command(verb="touch", key=b"k", exptime_s=60),
        (b"touch k 60\r\n", b"mg k T60\r\n", binary(0x1C, b"k", EXPIRY)),
    ),
    "gat": (
        Command(verb="gat", key=b"k", exptime_s=60),
        (b"gat 60 k\r\n", b"mg k v T60\r\n", binary(0x1D, b"k", EXPIRY)),
    ),
    "decr": (
        Command(verb="decr", key=b"k", amount=3),
        (b"decr k 3\r\n", b"ma k MD D3\r\n", binary(0x06, b"k", STEP)),
    ),
}


@pytest.mark.parametrize("name", ALIKE)
def test_the_same_command_is_read_from_each_protocol(name: str) -> None:
    command, forms = ALIKE[name]
    for form in forms:
        reader = RequestReader()
        requests = [request for byte in form + form for request in reader.feed(bytes([byte]))]
        assert [request.raw for request in requests] == [form, form]
        assert [request.commands for request in requests] == [[command], [command]], form


def test_each_key_of_a_read_is_a_command() -> None:
    (request,) = RequestReader().feed(b"get a b c\r\n")
    assert [command.key for command in request.commands] == [b"a", b"b", b"c"]
    assert request.reads


@pytest.mark.parametrize("line", [b"set k 0 60\r\n", b"set k 0 x 1\r\n1\r\n", b"touch k\r\n"])
def test_what_no_client_should_send_is_told(line: bytes) -> None:
    with pytest.raises(NotARequest):
        list(RequestReader().feed(line))


MIX = "set=1,mget=1,cas=1,mset=1,touch=1,delete_noreply=1"


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    sizes = ("--keys", "9", "--size", "10..90", "--exptime", "60", "--run", "3")
    return worker_driver.write_tape(tmp_path, *sizes, "--mix", MIX, "--ops", "60")


def sent_of(tape: Path) -> list[Command]:
    return [command for group in tape_commands(tape) for command in group]


def test_the_tapes_requests_pass_in_any_order_within_records(tape: Path) -> None:
    check_commands(sent_of(tape), tape, "mix", common=True)
    shuffled = [each for group in tape_commands(tape) for each in reversed(group)]
    check_commands(shuffled, tape, "mix", common=True)
    stranger = Command(verb="get", key=b"a library's own")
    check_commands([stranger, *shuffled], tape, "mix", common=True)


CHANGES: dict[str, dict[str, object]] = {
    "verb": {"verb": "add"},
    "flags": {"flags": 4},
    "expiry time": {"exptime_s": 0},
    "value": {"value": b"another"},
    "no reply": {"quiet": True},
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_difference_fails(name: str, tape: Path) -> None:
    sent = sent_of(tape)
    at = next(i for i, command in enumerate(sent) if command.verb == "set")
    sent[at] = msgspec.structs.replace(sent[at], **CHANGES[name])
    with pytest.raises(CaseFailedError, match="mix: sent verb="):
        check_commands(sent, tape, "mix", common=True)


def test_a_command_too_few_or_in_another_place_fails(tape: Path) -> None:
    sent = sent_of(tape)
    with pytest.raises(CaseFailedError, match="commands that were sent"):
        check_commands(sent[1:], tape, "mix", common=True)
    sent[0], sent[1] = sent[1], sent[0]
    with pytest.raises(CaseFailedError, match="mix: sent verb="):
        check_commands(sent, tape, "mix", common=True)


def test_defaults_may_mark_values_but_not_change_keys_or_times(tape: Path) -> None:
    marked = [
        msgspec.structs.replace(each, flags=2, value=b"*" + each.value) for each in sent_of(tape)
    ]
    check_commands(marked, tape, "mix", common=False)
    marked[0] = msgspec.structs.replace(marked[0], exptime_s=61)
    with pytest.raises(CaseFailedError):
        check_commands(marked, tape, "mix", common=False)
