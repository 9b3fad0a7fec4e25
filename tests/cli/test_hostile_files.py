"""Files and lines that are broken in any way are values, or errors in words; never a traceback."""

from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachemark.model import suites
from cachemark.model.errors import DECODE_ERRORS, UsageError
from cachemark.model.experiment_file import parse
from cachemark.model.outcome import from_line, to_line
from cachemark.model.protocol import (
    Done,
    Operation,
    Prepare,
    ProtocolError,
    Ready,
    decode_answer,
    decode_request,
    encode,
)
from tests.builders.stored_runs import kept, made_header, trials
from tests.cli.in_process import Inside

# Files for which no library raises its own error: no UTF-8, brackets and digits without end.
ODD = [b'"\xff"', b"[" * 20_000, b"9" * 5_000, b"\x00", b"1e999", b'"\\ud800"', b"-0"]
LINES = [
    encode(Ready(client="c", capabilities=["text"])),
    encode(Prepare(servers=["127.0.0.1:1"], tape="/t", segment=(1, 3), options={"a": "b"})),
    encode(
        Done(
            phase="measure",
            elapsed_ns=1,
            send_elapsed_ns=1,
            operations={"get": Operation(attempts=1, ok=0, errors={"timeout": 1})},
        )
    ),
]


@cache
def experiments() -> list[bytes]:
    folder = resources.files(suites)
    return [(folder / f"{name}.toml").read_bytes() for name in suites.names()]


@st.composite
def broken(draw: st.DrawFn, wholes: list[bytes]) -> bytes:
    """One of these with a few places cut out, put elsewhere, or something odd in their stead."""
    text = draw(st.sampled_from(wholes))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        end = min(len(text), at + draw(st.integers(0, 30)))
        instead = draw(
            st.one_of(st.sampled_from(ODD), st.binary(max_size=8), st.just(text[:at][-20:]))
        )
        text = text[:at] + instead + text[end:]
    return text


def refusal(read: Callable[[], object]) -> str:
    """The error; nothing if it can be read."""
    try:
        read()
    except (UsageError, ProtocolError) as refused:
        return str(refused)
    return ""


@given(st.deferred(lambda: broken(experiments())))
def test_an_experiment_is_read_or_refused(text: bytes) -> None:
    said = refusal(lambda: parse(text.decode("utf-8", "replace"), "f.toml"))
    assert not said or said.startswith("f.toml")
    assert len(said.splitlines()) <= 2, "a sentence and a remedy"


@pytest.mark.parametrize("decode", [decode_answer, decode_request])
@given(line=broken(LINES))
def test_a_message_is_read_or_refused(decode: Callable[[bytes], object], line: bytes) -> None:
    said = refusal(lambda: decode(line))
    assert not said or said.startswith("not a")


@given(st.deferred(lambda: broken([to_line(trials("a", 1000)[0])])))
def test_an_outcome_is_read_or_refused(line: bytes) -> None:
    try:
        from_line(line)
    except DECODE_ERRORS:
        return


@pytest.mark.parametrize("odd", ODD)
def test_a_broken_file_ends_with_2(tmp_path: Path, inside: Inside, odd: bytes) -> None:
    (tmp_path / "f.toml").write_bytes(b"name = " + odd)
    said = inside("run", "f.toml", "--dry-run")
    assert said.returncode == 2
    assert "f.toml" in said.stderr
    assert "Traceback" not in said.stderr


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("file", ["run.json", "outcomes.jsonl", "audit.json"])
def test_a_broken_run_ends_with_2(tmp_path: Path, inside: Inside, file: str, odd: bytes) -> None:
    outcomes = trials("a", 1000)
    run = kept(tmp_path, made_header("made"), outcomes)
    (run.folder / file).write_bytes(odd + b"\n")
    said = inside("report", str(run.folder))
    assert said.returncode == 2
    assert file in said.stderr
    assert "Traceback" not in said.stderr
