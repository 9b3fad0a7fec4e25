"""Events of a run, and what a page receives of them."""

import http.client
import json
import os
import threading
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest

from cachemark.cli.logged_display import trial_ended
from cachemark.model.events import MAX_LINE_BYTES, AnswersTold, Ended, Position, Started, TrialEnded
from cachemark.report.live import MAX_POINTS, LiveState
from cachemark.runs.events.log import EventLog, EventReader, own_identity, process_start
from cachemark.web.live.feed import Feed
from cachemark.web.server import WebServer
from cachemark.web.settings import WebSettings
from tests.builders.outcomes import measured
from tests.builders.stored_runs import kept, made_header
from tests.conftest import Cli
from tests.web.serving import Visitor, served


def started() -> Started:
    """The event of a run that this process plays."""
    pid, start = own_identity()
    return Started(pid=pid, process_start=start, unit="trial", total=8, ranks_by_rate=True)


def trial(client: str, block: int, rate: float | None, **changes: object) -> TrialEnded:
    """A trial of a client; without a rate it does not count."""
    given: dict[str, object] = {"verdict": "VALID"} if rate else {
        "verdict": "INVALID", "reason": "noise",
    }  # fmt: skip
    p99 = 1e9 / rate if rate else None
    cell = [client, "embedded", "mixed", "one"]
    return TrialEnded(cell=cell, block=block, rate=rate, p99=p99, **{**given, **changes})  # type: ignore[arg-type]


def state_of(log: Path) -> LiveState:
    """The texts of all events of a folder."""
    state = LiveState()
    for line in EventReader(log).new_lines():
        state.apply(line)
    return state


def test_events_are_read_once_and_continue_after_torn_lines(tmp_path: Path) -> None:
    reader = EventReader(tmp_path)
    assert reader.new_lines() == []
    log = EventLog(tmp_path)
    log.write(started())
    log.write(Position(number=1, total=8, what="a"))
    assert [line.id for line in reader.new_lines()] == [1, 2]
    with (tmp_path / "events.jsonl").open("ab") as file:
        file.write(b'no event\n{"id": 3, "torn')
    EventLog(tmp_path).write(Ended(interrupted=False))
    (line,) = reader.new_lines()
    assert (line.id, line.event) == (3, Ended(interrupted=False))


def test_a_line_that_is_too_long_is_left_out(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    log.write(AnswersTold(lines=["x" * MAX_LINE_BYTES]))
    log.write(AnswersTold(lines=["short"]))
    (line,) = EventReader(tmp_path).new_lines()
    assert line.event == AnswersTold(lines=["short"])


def test_an_unwritable_folder_does_not_stop_a_run(tmp_path: Path) -> None:
    EventLog(tmp_path / "none").write(started())
    assert not (tmp_path / "none").exists()


def test_a_trial_as_a_page_shows_it() -> None:
    found = trial_ended(measured("a", 3, 50_000, index=3))
    assert (found.cell[0], found.block, found.verdict) == ("a", 3, "VALID")
    assert found.rate == pytest.approx(65_000, rel=0.5)
    assert found.p99 is not None
    refused = msgspec.structs.replace(
        measured("a", 0, 1000), verdict="INVALID", reasons=["noise " * 1000]
    )
    shown = trial_ended(refused)
    assert shown.rate is None
    assert shown.reason.startswith("noise")
    assert len(shown.reason) < 1000


def test_the_ranking_begins_with_the_best_and_counts_exclusions(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    log.write(started())
    for block, rate in enumerate((100.0, 110.0)):
        log.write(trial("slow", block, rate))
        log.write(trial("fast", block, 2 * rate))
        log.write(trial("spoiled", block, None))
    state = state_of(tmp_path)
    (ranking,) = state.rankings()
    assert [row.name for row in ranking.rows] == ["fast", "slow", "spoiled"]
    first, last = ranking.rows[0], ranking.rows[-1]
    assert (first.low, first.high) == (200.0, 220.0)
    assert (last.value, last.valid, last.trials) == (None, 0, 2)
    (problem,) = state.problems()
    assert (problem.verdict, problem.reason, problem.count) == ("INVALID", "noise", 2)


def test_a_long_run_has_few_points(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    for block in range(3 * MAX_POINTS):
        log.write(trial("a", block, 100.0 + block))
    points = state_of(tmp_path).timeline()
    assert len(points) == MAX_POINTS
    assert points[0].rate == 101.0  # the mean of three blocks


def test_what_is_new_completes_what_was_seen(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    log.write(started())
    log.write(trial("a", 0, 100.0))
    seen = Feed(tmp_path).snapshot()["id"]
    assert seen == 2
    log.write(trial("b", 0, 50.0))
    number, messages = Feed(tmp_path).messages(2)
    assert number == 3
    by_name = {name: json.loads(data) for name, data in messages}
    assert by_name["cell"] == {"number": 1, "names": ["b", "embedded", "mixed", "one"]}
    assert [point[:2] for point in by_name["points"]] == [[1, 0]]
    assert [row["name"] for row in by_name["ranking"]["rows"]] == ["a", "b"]
    assert by_name["status"]["running"] is True
    assert Feed(tmp_path).messages(3) == (3, [])


def test_messages_are_short(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    log.write(started())
    for number in range(60):
        client = f"command:/some/where/else/worker --number {number}"
        log.write(trial(client, 0, 12_345.678901 * (number + 1), client_cpu_us=12.3456789012))
        log.write(trial(client, 1, None, reason="r" * 600))
    _, messages = Feed(tmp_path).messages(0)
    assert max(len(data) for _, data in messages) < 4096
    rows = [json.loads(data) for name, data in messages if name == "ranking"]
    assert sum(len(part["rows"]) for part in rows) == 60


def test_a_process_that_has_gone_is_not_running(tmp_path: Path) -> None:
    assert process_start(2**22 + 1) == ""
    gone = msgspec.structs.replace(started(), process_start="1")
    EventLog(tmp_path).write(gone)
    assert Feed(tmp_path).standing() == "ended"
    assert Feed(tmp_path).snapshot()["interrupted"] is True


def test_the_server_yields_to_everything_else(tmp_path: Path) -> None:
    settings = WebSettings(root=tmp_path)
    with WebServer(settings) as server:
        assert Visitor(server.address, settings).get("/nothing").status == 404
        (thread,) = [each for each in threading.enumerate() if each.name == "web"]
        assert thread.native_id is not None
        assert os.getpriority(os.PRIO_PROCESS, thread.native_id) == 19


def test_a_stream_replays_missed_events_and_ends_with_the_run(tmp_path: Path) -> None:
    run = kept(tmp_path, made_header("now"), [])
    log = EventLog(run.folder)
    log.write(started())
    log.write(trial("a", 0, 100.0))
    log.write(trial("a", 1, 200.0))
    log.write(Ended(interrupted=False))
    with served(tmp_path) as visitor:
        assert visitor.get("/runs/now/live").status == 200
        state = json.loads(visitor.get("/runs/now/live/state").text)
        assert (state["id"], state["running"], state["interrupted"]) == (4, False, False)
        connection = http.client.HTTPConnection(urlsplit(visitor.address).netloc, timeout=600)
        connection.request("GET", "/runs/now/live/events?after=0", headers={"last-event-id": "2"})
        response = connection.getresponse()
        assert response.headers["content-type"].startswith("text/event-stream")
        text = response.read().decode()
        connection.close()
        (points,) = [part for part in text.split("\n\n") if part.startswith("event: points")]
        assert json.loads(points.partition("data: ")[2]) == [
            [0, 1, pytest.approx(0, abs=60), 200.0, None, 5e6]
        ]
        assert "id: 4\n" in text
        assert visitor.get("/runs/nobody/live/events").status == 404


@pytest.mark.slow("it plays a run")
def test_a_run_writes_its_events(cli: Cli, tmp_path: Path) -> None:
    words = "run quick --client native --server embedded --blocks 2 --measure-ms 200"
    settings = "--set design=trials --set timing.warmup_ms=100 --set noise=note"
    ended = cli(*words.split(), *settings.split())
    (folder,) = (path for path in (tmp_path / "results").iterdir() if path.is_dir())
    events = [line.event for line in EventReader(folder).new_lines()]
    assert isinstance(events[0], Started), ended.stderr
    assert events[-1] == Ended(interrupted=False)
    trials = [event for event in events if isinstance(event, TrialEnded)]
    played = [json.loads(line) for line in (folder / "outcomes.jsonl").read_text().splitlines()]
    assert [event.cell[0] for event in trials] == [
        outcome["trial"]["cell"]["client"] for outcome in played
    ]
    assert Feed(folder).standing() == "ended"
