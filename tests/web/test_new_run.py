"""The form of a new run, stop and resume, and the documentation: without a run being played."""

import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from cachemark.host.placement import beside
from cachemark.model.errors import UsageError
from cachemark.model.outcome import Outcome
from cachemark.runs.events.log import WEB_PID, EventLog, with_web_time
from cachemark.web.pages.new_run import RunForm, form_problems
from cachemark.web.player import CommandedRun, RunPlayer
from cachemark.web.verbs import error_of
from tests.builders.outcomes import measured
from tests.builders.stored_runs import kept, made_header
from tests.web.serving import Visitor, served
from tests.web.test_live import started

TOML = """
name = "own"
question = "Which?"
clients = ["native"]
servers = ["embedded"]

[[workloads]]
name = "mixed"
mix = { get = 1 }

[[loads]]
name = "one"
"""
TRACE = TOML.replace("mix = { get = 1 }", 'trace = "/etc/passwd"')
GENERATOR = TOML.replace(
    'name = "one"', 'name = "one"\nmeasure = { rate = 100, generator = "command:sh" }'
)


@pytest.fixture
def visitor(tmp_path: Path) -> Iterator[Visitor]:
    kept(tmp_path, made_header("first"), [])
    with served(tmp_path) as visitor:
        yield visitor


def test_every_bad_value_is_marked_at_its_field(visitor: Visitor) -> None:
    bad = {
        "suite": "../first", "client": "native\nnobody", "server": "memcachedd",
        "blocks": "many", "warmup_ms": "-1", "measure_ms": "1e3",
    }  # fmt: skip
    answer = visitor.post("/new", bad)
    assert answer.status == 422
    for field in bad:
        assert f'aria-describedby="wrong-{field}"' in answer.text
    assert "no client &#39;nobody&#39;" in answer.text
    assert 'value="many"' in answer.text
    assert ">one or more<" in visitor.post("/new", {"blocks": "0"}).text
    answer = visitor.post("/new", {"experiment": TOML.replace("clients", "cleints"), "quick": "1"})
    assert "experiment:4: cleints: no such setting" in answer.text
    assert "only suites have a small grid" in answer.text


@pytest.mark.parametrize(
    ("form", "field"),
    [
        (RunForm(client="native\ncommand:sh -c true"), "client"),
        (RunForm(server="remote:192.0.2.1:11211"), "server"),
        (RunForm(server="memcached:binary=/bin/sh"), "server"),
        (RunForm(experiment=TOML.replace('"native"', '"command:sh"')), "experiment"),
        (RunForm(experiment=TOML, client="command:sh"), "client"),
        (RunForm(experiment=TRACE), "experiment"),
        (RunForm(experiment=GENERATOR), "experiment"),
    ],
)
def test_programs_files_and_other_machines_need_trust(form: RunForm, field: str) -> None:
    found = form_problems(form, trusted=False)
    assert list(found) == [field]
    assert "--trust-commands" in found[field]
    assert form_problems(form, trusted=True) == {}


def test_what_is_ready_here_needs_no_trust() -> None:
    assert form_problems(RunForm(client="native", server="embedded"), trusted=False) == {}
    assert form_problems(RunForm(experiment=TOML), trusted=False) == {}


def test_read_only_starts_and_stops_nothing(tmp_path: Path) -> None:
    kept(tmp_path, made_header("first"), [])
    with served(tmp_path, read_only=True) as visitor:
        assert 'href="/new"' not in visitor.get("/runs").text
        assert "<form" not in visitor.get("/runs/first/live").text
        for path in ("/new", "/runs/first/stop", "/runs/first/resume"):
            assert visitor.post(path, {"action": "start"}).status == 403


def test_forms_of_other_pages_start_and_stop_nothing(visitor: Visitor) -> None:
    for path in ("/new", "/runs/first/stop", "/runs/first/resume"):
        assert visitor.post(path, {"csrf": "forged", "action": "start"}).status == 403
        assert visitor.post(path, {}, origin="http://evil.example").status == 403


def test_only_a_run_that_was_started_here_is_stopped(visitor: Visitor) -> None:
    answer = visitor.post("/runs/first/stop", {})
    assert answer.status == 422
    assert "was not started from these pages" in answer.text
    assert visitor.post("/runs/nobody/stop", {}).status == 404
    assert visitor.post("/runs/nobody/resume", {}).status == 404


def test_nothing_is_started_beside_a_run_of_a_terminal(visitor: Visitor) -> None:
    log = EventLog(visitor.settings.root / "first")
    log.write(started())
    answer = visitor.post("/new", {"suite": "quick"})
    assert answer.status == 409
    assert "first is going on" in answer.text
    assert visitor.post("/runs/first/resume", {}).status == 409
    assert visitor.post("/machine/doctor", {}).status == 409
    assert visitor.post("/import", b"").status == 409


@pytest.mark.parametrize("late", [False, True])
def test_waiting_viewers_learn_that_the_server_ends(tmp_path: Path, late: bool) -> None:
    released = threading.Event()
    player = RunPlayer(tmp_path, "", released.set)
    said: list[str] = []

    def start() -> None:
        try:
            player.start(CommandedRun(options=["quick"]))
        except UsageError as error:
            said.append(error.text)

    waiting = threading.Thread(target=start)
    if late:
        player.close()
        waiting.start()
    else:
        waiting.start()
        player.close()
    waiting.join(60)
    assert said == ["the run was not started: this server is about to end"]
    assert released.is_set()
    player.play()  # returns at once


def test_the_error_of_a_verb_is_its_last_line() -> None:
    found = error_of(
        "mixed: get\nquick: 2 trials\ncachemark: too much memory\n  fewer clients\n", 2
    )
    assert (found.text, found.remedy) == ("too much memory", "fewer clients")
    assert error_of("", -9).text == "status -9"


def test_the_documentation_is_served_or_its_remedy_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CACHEMARK_DOCS", str(tmp_path / "site"))
    (tmp_path / "site").mkdir()
    with served(tmp_path) as visitor:
        answer = visitor.get("/docs/")
        assert answer.status == 404
        assert "run `make docs` in the checkout" in answer.text
        pages = tmp_path / "site" / "html"
        pages.mkdir()
        (pages / "index.html").write_text("<h1>Built</h1>", encoding="utf-8")
        (tmp_path / "site" / "secret").write_text("secret", encoding="utf-8")
        answer = visitor.get("/docs/")
        assert (answer.status, answer.text) == (200, "<h1>Built</h1>")
        assert "worker-src 'self'" in answer.headers["content-security-policy"]
        for path in ("/docs/../secret", "/docs/..%2fsecret", "/docs/none.html"):
            assert visitor.get(path).status == 404
        assert "unsafe" not in visitor.get("/runs").headers["content-security-policy"]


def test_the_server_has_its_own_core_among_three() -> None:
    assert beside([[0], [1]]) == ("", "")
    assert beside([[0, 4], [1, 5], [2, 6]]) == ("0,1,4,5", "2,6")


def test_what_the_server_used_is_in_the_outcomes(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = measured("a", 0, 1000)

    def played() -> list[Outcome]:
        return [outcome]

    assert with_web_time(played) == [outcome]
    times = {7: iter([100, 350]), 8: iter([None, None])}
    monkeypatch.setattr("cachemark.runs.events.log.cpu_ns", lambda pid: next(times[pid]))
    monkeypatch.setenv(WEB_PID, "7")
    assert with_web_time(played) == [msgspec.structs.replace(outcome, web_cpu_ns=250)]
    monkeypatch.setenv(WEB_PID, "8")  # it has ended
    assert with_web_time(played) == [outcome]
