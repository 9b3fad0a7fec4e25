"""Runs that a page starts, stops and resumes: the real `cachemark web`, and Chromium."""

import os
import re
import select
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cachemark.model.events import Started
from cachemark.runs.events.log import EventReader, process_start
from cachemark.runs.storage.store import open_run
from cachemark.web.settings import WebSettings
from tests.builders.small_experiments import PATIENT, TRIALS
from tests.headless import NEEDS_CHROMIUM, browser
from tests.web.chromium import expect, opened
from tests.web.serving import Visitor, verb_command

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["browser"]

pytestmark = NEEDS_CHROMIUM
SMALL = TRIALS.replace(*PATIENT)
# It ends when it is stopped.
LONG = SMALL.replace("blocks = 2", "blocks = 500")


@contextmanager
def process_of(
    *arguments: str, stderr: int | None = None, end: signal.Signals = signal.SIGTERM
) -> Iterator[subprocess.Popen[str]]:
    """A verb as a process, which gets a signal at the end if it has not ended."""
    command = verb_command(*arguments)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True) as running:
        try:
            yield running
        finally:
            running.send_signal(end)
            try:
                running.communicate(timeout=600)
            except subprocess.TimeoutExpired:
                running.kill()


@contextmanager
def pages(root: Path, port: int = 0, end: signal.Signals = signal.SIGTERM) -> Iterator[Visitor]:
    """The pages of a store, served by a process of their own."""
    with process_of("web", f"--port={port}", f"--runs={root}", end=end) as server:
        assert server.stdout is not None
        found = re.search(r"shown at (\S+)/;", server.stdout.readline())
        assert found
        yield Visitor(found[1], WebSettings(root=root))


def start(page: "Page", experiment: str) -> str:
    """Start an experiment with the form; the name of its run."""
    page.goto("/new")
    page.get_by_label("Experiment").fill(experiment)
    page.get_by_role("button", name="Show the plan").click()
    expect(page.locator("section h2")).to_contain_text("small: ")
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/live")
    return page.url.split("/")[-2]


def last_start(folder: Path) -> Started:
    """The process that plays a run, or played it last."""
    events = [line.event for line in EventReader(folder).new_lines()]
    return [event for event in events if isinstance(event, Started)][-1]


def has_ended(started: Started) -> bool:
    """Whether the process of a run ends within a minute."""
    try:
        process = os.pidfd_open(started.pid)
    except ProcessLookupError:
        return True
    try:
        if process_start(started.pid) != started.process_start:
            return True
        poll = select.poll()
        poll.register(process, select.POLLIN)
        return bool(poll.poll(60_000))
    finally:
        os.close(process)


def test_a_started_run_settles_and_survives_a_reload(browser: "Browser", tmp_path: Path) -> None:
    with pages(tmp_path) as visitor, opened(browser, visitor) as page:
        run = start(page, SMALL)
        page.reload()
        expect(page.locator("#standing")).to_have_text("It has ended")
        expect(page.locator("#rankings tbody tr")).to_contain_text("of 2")
        expect(page.get_by_role("button", name="Stop")).to_be_hidden()
        expect(page.get_by_role("button", name="Resume")).to_be_hidden()
        page.get_by_role("link", name=run).click()
        assert page.locator("h1").inner_text() == "Does it work?"
        outcomes = open_run(run, tmp_path).outcomes()
        assert len(outcomes) == 2
        assert all(outcome.web_cpu_ns is not None for outcome in outcomes)


def test_a_run_is_stopped_resumed_and_ends_with_the_server(
    browser: "Browser", tmp_path: Path
) -> None:
    with pages(tmp_path) as visitor:
        with opened(browser, visitor) as page:
            run = start(page, LONG)
            expect(page.locator("#rankings tbody tr")).to_have_count(1)
            first = last_start(tmp_path / run)
            # The server's thread has a lower priority, and the run has not.
            own = os.getpriority(os.PRIO_PROCESS, 0)
            assert os.getpriority(os.PRIO_PROCESS, first.pid) == own
            page.get_by_role("button", name="Stop").click()
            expect(page.locator("#standing")).to_contain_text("Not running: it was interrupted")
            assert has_ended(first)
            kept = len(open_run(run, tmp_path).outcomes())
            assert kept > 0
            page.get_by_role("button", name="Resume").click()
            expect(page.locator("#standing")).to_contain_text("Running: trial")
            expect(page.get_by_role("button", name="Stop")).to_be_visible()
            # A second one has to wait.
            page.goto("/new")
            expect(page.get_by_role("link", name=run)).to_be_visible()
            csrf = page.locator("input[name=csrf]").input_value()
            answer = visitor.post("/new", {"csrf": csrf, "suite": "quick"})
            assert answer.status == 409
        second = last_start(tmp_path / run)
        assert second.pid != first.pid
    assert has_ended(second)
    assert len(open_run(run, tmp_path).outcomes()) >= kept


def wait_for_a_point(visitor: Visitor, run: str) -> None:
    """Wait until the pages tell of a trial that has ended."""
    with urllib.request.urlopen(f"{visitor.address}/runs/{run}/live/events?after=0") as stream:
        assert any(line == b"event: points\n" for line in stream)


def test_a_run_shows_itself(tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(LONG)
    arguments = ("run", str(tmp_path / "long.toml"), f"--runs={tmp_path}", "--web")
    with process_of(*arguments, stderr=subprocess.PIPE) as run:
        assert run.stderr is not None
        lines = iter(run.stderr.readline, "")
        address = next(found[1] for line in lines if (found := re.match(r"shown at (\S+)", line)))
        name = address.split("/")[-2]
        visitor = Visitor(address.partition("/runs/")[0], WebSettings(root=tmp_path))
        assert visitor.get(f"/runs/{name}/live").status == 200
        assert visitor.post("/new", {}).status == 403
        wait_for_a_point(visitor, name)
        run.send_signal(signal.SIGINT)
        said = "".join(lines)
        run.wait(120)
    outcomes = open_run(name, tmp_path).outcomes()
    assert outcomes, said
    assert all(outcome.web_cpu_ns is not None for outcome in outcomes)
