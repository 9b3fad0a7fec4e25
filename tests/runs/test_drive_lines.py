"""A drive that is piped into `cachemark web --drive`: its lines, and what a page makes of them."""

import io
import json
from pathlib import Path

import msgspec
import pytest

from cachemark.endpoints.servers import parse_spec, running
from cachemark.model.events import Ended, SecondEnded, TrialEnded
from cachemark.model.protocol import Done
from cachemark.runs.events.drive_lines import Drive, follow
from cachemark.runs.events.log import EventLog, EventReader
from cachemark.web.live.feed import Feed
from tests.builders.search_outcomes import operations
from tests.cli.in_process import Inside
from tests.engine.drive_command import drive
from tests.web.serving import served

BEGIN = {
    "event": "begin", "server": "127.0.0.1:11211", "threads": 1, "connections": 4, "depth": 2,
    "open_loop": False, "duration_ms": 2500, "io": "epoll",
}  # fmt: skip
# Too few operations for a p99; three of them waited for a connection.
MEASURE = Done(
    phase="measure",
    elapsed_ns=2 * 10**9,
    send_elapsed_ns=2 * 10**9,
    operations={"get": operations(220, 1000)},
    cpu_user_ns=440_000,
    queued=3,
)
PLAYED = msgspec.to_builtins(MEASURE)
GET = PLAYED["operations"]["get"]
RESULT = {"event": "result", "problem": None, "warmup_ops": 0, "measure": PLAYED}
TITLE = "127.0.0.1:11211 · drive · closed loop, 4 connections, depth 2"


def second(number: int, phase: str = "measure", **changes: object) -> dict[str, object]:
    """The line of a second."""
    given = {"rate": 100.0 * number, "failed": number, "p50_ns": 1000, "p99_ns": 9000}
    return {
        "event": "second",
        "phase": phase,
        "second": number,
        "cpu_percent": 9,
        **given,
    } | changes


def line_of(given: dict[str, object]) -> bytes:
    """A line as the engine prints it."""
    return json.dumps(given).encode() + b"\n"


def fed(folder: Path, *lines: dict[str, object] | bytes) -> Feed:
    """The events that a page gets of these lines."""
    texts = [line if isinstance(line, bytes) else line_of(line) for line in lines]
    follow(io.BytesIO(b"".join(texts)), EventLog(folder))
    return Feed(folder)


def test_seconds_are_points_and_results_cover_the_window(tmp_path: Path) -> None:
    feed = fed(
        tmp_path, BEGIN, second(1, "prefill"), second(1), second(2, p50_ns=None, p99_ns=None),
        RESULT,
    )  # fmt: skip
    messages = [(name, json.loads(data)) for name, data in feed.messages(0)[1]]
    assert [point[:2] + point[3:] for point in dict(messages)["points"]] == [
        [0, 0, 100.0, 1000.0, 9000.0],
        [0, 1, 200.0, None, None],
    ]
    ranking = dict(messages)["ranking"]
    assert ranking["title"] == TITLE
    (row,) = ranking["rows"]
    assert row["value"] == pytest.approx(110.0)
    assert (row["name"], row["p99"], row["errors"]) == ("native", None, 0)
    assert (row["valid"], row["trials"], row["client_cpu_us"]) == (1, 1, 2.0)
    status = dict(messages)["status"]
    assert (status["unit"], status["position"]["number"], status["position"]["total"]) == (
        "second", 2, 3,
    )  # fmt: skip
    assert (status["running"], status["interrupted"], status["noise"]) == (False, False, None)
    told = ["3 operations were due and waited for a free connection"]
    assert ("words", {"answers": told}) in messages
    assert "problem" not in dict(messages)


def test_the_engine_prints_such_lines() -> None:
    words = ("--duration", "1500ms", "--warmup", "0s", "--keys", "100", "--timeout", "10s")
    with running(parse_spec("embedded")) as server:
        ended = drive("--server", server.addresses[0], *words, "--json-lines")
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert (lines[0]["event"], lines[-1]["event"]) == ("begin", "result")
    assert lines[0]["duration_ms"] == 1500
    assert lines[-1]["measure"]["operations"]["get"]["ok"] > 0
    assert {line["event"] for line in lines[1:-1]} == {"second"}
    # Python understands all of them.
    found = Drive()
    events = [event for line in ended.stdout.encode().splitlines() for event in found.events(line)]
    assert found.is_complete
    assert isinstance(events[-1], TrialEnded)
    assert events[-1].verdict == "VALID"
    seconds = [event for event in events if isinstance(event, SecondEnded)]
    measured = [line for line in lines if line.get("phase") == "measure"]
    assert [second.p99 for second in seconds] == [line["p99_ns"] for line in measured]
    assert seconds


def test_until_results_come_the_rate_is_of_the_seconds(tmp_path: Path) -> None:
    feed = fed(tmp_path, BEGIN, second(1), second(2))
    messages = dict(feed.messages(0)[1])
    (row,) = json.loads(messages["ranking"])["rows"]
    assert (row["value"], row["low"], row["p99"], row["errors"]) == (150.0, None, None, 2)
    assert json.loads(messages["status"])["interrupted"] is True


def test_a_drive_that_failed_says_why(tmp_path: Path) -> None:
    feed = fed(tmp_path, BEGIN, {**RESULT, "problem": "275 of 278 operations failed"})
    problem = json.loads(dict(feed.messages(0)[1])["problem"])
    assert (problem["verdict"], problem["reason"]) == ("failed", "275 of 278 operations failed")


def test_a_window_whose_own_client_was_late_is_invalid(tmp_path: Path) -> None:
    lag = operations(220, 50_000_000).response
    late = msgspec.structs.replace(
        MEASURE, generator_lag=lag, send_lag=lag, operations={"get": operations(220, 60_000_000)}
    )
    result = {**RESULT, "measure": msgspec.to_builtins(late)}
    feed = fed(tmp_path, {**BEGIN, "open_loop": True}, result)
    messages = dict(feed.messages(0)[1])
    problem = json.loads(messages["problem"])
    assert problem["verdict"] == "INVALID"
    assert "the client sent too late" in problem["reason"]


def test_what_is_no_line_of_a_drive_is_passed_over(tmp_path: Path) -> None:
    hostile = {**BEGIN, "server": "\x1b[2J" + "x" * 5000}
    lines: tuple[dict[str, object] | bytes, ...] = (
        b"no JSON\n",
        b"[" * 9000 + b"\n",
        {"event": "other"},
        hostile,
        second(1),
        {**RESULT, "measure": "x"},
        {**RESULT, "measure": {**PLAYED, "operations": {"get": {**GET, "response": "none"}}}},
    )
    fed(tmp_path, *lines)
    events = [line.event for line in EventReader(tmp_path).new_lines()]
    assert [type(event).__name__ for event in events] == [
        "Started", "Started", "Position", "SecondEnded", "Ended",
    ]  # fmt: skip
    assert events[-1] == Ended(interrupted=True)
    assert "\x1b" not in repr(events)


def test_the_page_of_a_drive(tmp_path: Path) -> None:
    store, events = tmp_path / "results", tmp_path / "events"
    store.mkdir()
    events.mkdir()
    with served(store) as visitor:
        answer = visitor.get("/drive")
        assert answer.status == 404
        assert "cachemark web --drive" in answer.text
        assert 'href="/drive"' not in visitor.get("/runs").text
    log = EventLog(events)
    with served(store, drive=events) as visitor:
        assert 'href="/drive"' in visitor.get("/runs").text
        page = visitor.get("/drive")
        assert 'data-address="/drive"' in page.text
        assert "<form" not in page.text
        assert json.loads(visitor.get("/drive/state").text)["running"] is False
        follow(io.BytesIO(line_of(BEGIN)), log)
        assert "event: status" in visitor.get("/drive/events?after=0").text


def test_nothing_is_started_beside_a_drive(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    for event in Drive().events(line_of(BEGIN)):
        log.write(event)
    with served(tmp_path, drive=tmp_path) as visitor:
        answer = visitor.post("/new", {"suite": "quick"})
        assert answer.status == 409
        assert "the drive is going on" in answer.text


def test_a_drive_is_piped(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    said = inside("web", "--drive")
    assert said.returncode == 2
    assert "stdin is a terminal" in said.stderr
    assert "--json-lines | cachemark web --drive" in said.stderr
