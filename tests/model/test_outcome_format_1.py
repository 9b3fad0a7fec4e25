"""Outcomes of format 1 keep all of their values under the names of format 2."""

from pathlib import Path

import msgspec
import pytest

from cachemark.model.outcome import OUTCOME_FORMAT, from_line, to_line
from tests.builders.outcomes import measured

STORE = Path(__file__).parent.parent / "runs" / "storage" / "earlier_versions" / "0.1.0"
LINES = [line for path in STORE.glob("*/*.jsonl") for line in path.read_bytes().splitlines()]


def stored(**fields: object) -> bytes:
    """A line of format 1 with other fields in its `measure`."""
    old = msgspec.json.decode(LINES[0])
    return msgspec.json.encode({**old, "measure": {**old["measure"], **fields}})


@pytest.mark.parametrize("line", LINES)
def test_a_stored_outcome_keeps_its_timeline_and_capabilities(line: bytes) -> None:
    old = msgspec.json.decode(line)
    outcome = from_line(line)
    assert outcome.measure
    assert outcome.measure.timeline
    assert outcome.measure.timeline.ok == old["measure"]["course"]["ok"]
    assert outcome.worker
    assert "timeline" in outcome.worker.capabilities
    assert len(outcome.worker.capabilities) == len(old["worker"]["capabilities"])
    assert outcome.stationarity
    assert outcome.stationarity.why == old["steadiness"]["why"]


def test_each_renamed_field_is_read() -> None:
    measure = from_line(stored(lag="a", late="b", bound=3, beyond=4)).measure
    assert measure
    assert (measure.send_lag, measure.generator_lag) == ("a", "b")
    assert (measure.queued, measure.overflow) == (3, 4)


def test_plateaus_are_read() -> None:
    old = msgspec.json.decode(LINES[0])
    levels = [{"from_ms": 0.0, "to_ms": 5.0, "value": 7.0}]
    line = msgspec.json.encode({**old, "steadiness": {**old["steadiness"], "levels": levels}})
    stationarity = from_line(line).stationarity
    assert stationarity
    assert [plateau.value for plateau in stationarity.plateaus] == [7.0]


def test_an_outcome_of_format_1_is_converted() -> None:
    outcome = from_line(LINES[0])
    assert outcome.format == OUTCOME_FORMAT
    assert from_line(to_line(outcome)) == outcome


def test_a_later_format_is_refused() -> None:
    line = to_line(msgspec.structs.replace(measured("a", 0, 100), format=OUTCOME_FORMAT + 1))
    with pytest.raises(msgspec.ValidationError, match="this cachemark reads formats 1 to"):
        from_line(line)
