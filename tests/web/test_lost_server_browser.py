"""The server of a live page is killed and comes back, while the run goes on; or it refuses."""

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cachemark.model.events import Ended, Position
from cachemark.runs.events.log import EventLog
from cachemark.web.settings import WebSettings
from tests.builders.stored_runs import kept, made_header
from tests.headless import NEEDS_CHROMIUM, browser
from tests.web.chromium import expect, opened
from tests.web.serving import Visitor, served
from tests.web.test_live import started, trial
from tests.web.test_started_browser import pages

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["browser"]

pytestmark = NEEDS_CHROMIUM
PAGE = "/runs/now/live"
AWAY = "The server does not answer: trying again"
# The browser itself says that a server is away, and that it is one which refuses.
COMPLAINTS = ("Failed to load resource", "EventSource's response has a MIME type")
# Keeps the curves for the test: what they draw is what the page has received.
KEEP_CURVES = """
    window.curves = [];
    let made;
    Object.defineProperty(window, "uPlot", {
        get: () => made,
        set: (given) => {
            made = new Proxy(given, {
                construct(target, values) {
                    const curve = Reflect.construct(target, values);
                    window.curves.push(curve);
                    return curve;
                },
            });
        },
    });
"""


@pytest.fixture
def visitor(tmp_path: Path) -> Visitor:
    """Of a server that is not there yet."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    return Visitor(f"http://127.0.0.1:{port}", WebSettings(root=tmp_path, port=port))


@contextmanager
def killed_at_the_end(visitor: Visitor) -> Iterator[None]:
    """The pages of a store, served by a process that is killed."""
    with pages(visitor.settings.root, visitor.settings.port, signal.SIGKILL):
        yield


@pytest.fixture
def log(tmp_path: Path) -> EventLog:
    kept(tmp_path, made_header("now"), [])
    log = EventLog(tmp_path / "now")
    log.write(started())
    write(log, 0, 1)
    return log


def write(log: EventLog, *blocks: int) -> None:
    """Trials of two clients, and the position after them."""
    for block in blocks:
        log.write(trial("a", block, 100.0 + block))
        log.write(trial("b", block, 200.0 + block))
    log.write(Position(number=blocks[-1] + 1, total=8, what="a"))


def drawn(page: "Page") -> list[list[float]]:
    """Blocks and rates of both clients, as the curve of the rates has them."""
    return page.evaluate("window.curves[0].data.map((column) => [...column])")


def expected(blocks: int) -> list[list[float]]:
    return [
        [block + 1 for block in range(blocks)],
        [100.0 + block for block in range(blocks)],
        [200.0 + block for block in range(blocks)],
    ]


def test_no_event_is_lost_or_doubled(browser: "Browser", visitor: Visitor, log: EventLog) -> None:
    with opened(browser, visitor, COMPLAINTS) as page:
        page.add_init_script(KEEP_CURVES)
        standing = page.locator("#standing")
        with killed_at_the_end(visitor):
            page.goto(PAGE)
            write(log, 2)
            expect(standing).to_have_text("Running: trial 3 of 8")
        expect(standing).to_have_text(AWAY)
        write(log, 3, 4)
        with killed_at_the_end(visitor):
            expect(standing).to_have_text("Running: trial 5 of 8")
            expect(page.locator("#rankings tbody tr").first).to_contain_text("5 of 5")
            assert drawn(page) == expected(5)
        expect(standing).to_have_text(AWAY)
        # Nothing has happened meanwhile: the message goes all the same.
        with killed_at_the_end(visitor):
            expect(standing).to_have_text("Running: trial 5 of 8")
            write(log, 5)
            log.write(Ended(interrupted=False))
            expect(standing).to_have_text("It has ended")
            assert drawn(page) == expected(6)


def test_a_server_that_refuses_is_no_server_that_is_away(
    browser: "Browser", visitor: Visitor, log: EventLog
) -> None:
    root, port = visitor.settings.root, visitor.settings.port
    with opened(browser, visitor, COMPLAINTS) as page:
        with served(root, port=port):
            page.goto(PAGE)
            expect(page.locator("#standing")).to_have_text("Running: trial 2 of 8")
        # It comes back with a token that this page does not have.
        with served(root, port=port, token="the token"):
            expect(page.locator("#standing")).to_contain_text("refuses to go on with this page")
            write(log, 2)
            page.reload()
            expect(page.locator("h1")).to_have_text("This server needs its token")
