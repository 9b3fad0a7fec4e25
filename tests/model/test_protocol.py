"""The protocol's table: documents fresh, every message valid by its own schema."""

import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachemark.model import protocol
from cachemark.model.merging import merge
from cachemark.model.protocol_docs import document, schema
from cachemark.model.protocol_results import HeapWork

ROOT = Path(__file__).resolve().parents[2]
REQUESTS = [
    protocol.Hello(),
    protocol.Prepare(servers=["127.0.0.1:1"], tape="/t", segment=(1, 3), options={"a": "b"}),
    protocol.RunRequest(phase="measure", ops=5, duration_ms=7, start_unix_ns=2**60),
    protocol.Stop(),
    protocol.Bye(),
]
ANSWERS = [
    protocol.Ready(client="c", capabilities=["text"]),
    protocol.Progress(ops=3),
    protocol.Done(
        phase="warmup",
        elapsed_ns=1,
        send_elapsed_ns=1,
        operations={"get": protocol.Operation(attempts=1, ok=0, errors={"timeout": 1})},
    ),
    protocol.Unsupported(reason="no"),
    protocol.Failure(kind="connect", text="refused", definite=False),
]


def test_the_generated_documents_are_up_to_date() -> None:
    assert (ROOT / "PROTOCOL.md").read_text(encoding="utf-8") == document(fields=False)
    assert (ROOT / "docs" / "protocol.schema.json").read_text(encoding="utf-8") == schema()


def test_every_message_is_encoded_decoded_and_valid_by_the_schema() -> None:
    validator = jsonschema.Draft202012Validator(json.loads(schema()))
    for message, decode in [(m, protocol.decode_request) for m in REQUESTS] + [
        (m, protocol.decode_answer) for m in ANSWERS
    ]:
        line = protocol.encode(message)
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1
        assert decode(line) == message
        validator.validate(json.loads(line))


def test_unknown_fields_are_ignored() -> None:
    assert protocol.decode_answer(
        b'{"type":"progress","ops":1,"mood":"fine"}'
    ) == protocol.Progress(ops=1)


@given(st.binary(max_size=80).filter(lambda line: b"type" not in line))
def test_an_error_quotes_the_garbage(line: bytes) -> None:
    with pytest.raises(protocol.ProtocolError, match="not an answer"):
        protocol.decode_answer(line)


@pytest.mark.parametrize(
    "line", [b'{"type":"done"}', b'{"type":"progress","ops":-1}', b'{"type":"hello"}', b"[]", b""]
)
def test_malformed_answers_are_refused(line: bytes) -> None:
    with pytest.raises(protocol.ProtocolError):
        protocol.decode_answer(line)


def test_results_of_several_workers_are_summed() -> None:
    def part(ok: int, elapsed_ns: int) -> protocol.Done:
        operation = protocol.Operation(attempts=ok + 1, ok=ok, keys=ok, errors={"timeout": 1})
        return protocol.Done(
            phase="measure",
            elapsed_ns=elapsed_ns,
            send_elapsed_ns=elapsed_ns,
            operations={"get": operation},
            max_in_flight=2,
        )

    merged = merge([part(3, 10), part(5, 20)])
    assert merged.elapsed_ns == 20
    assert merged.max_in_flight == 4
    assert merged.operations["get"].ok == 8
    assert merged.operations["get"].errors == {"timeout": 2}


def test_a_heap_figure_is_summed_if_all_workers_count_it() -> None:
    def part(heap: HeapWork | None) -> protocol.Done:
        return protocol.Done(
            phase="measure", elapsed_ns=1, send_elapsed_ns=1, operations={}, heap=heap
        )

    one, other = HeapWork(allocations=3, collections=1), HeapWork(allocations=4)
    assert merge([part(one), part(other)]).heap == HeapWork(allocations=7)
    assert merge([part(one), part(None)]).heap is None
