"""A drive of minutes in a headless Chromium: curves grow, and the memory of the tab does not."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cachemark.model.events import Ended
from cachemark.runs.events.drive_lines import Drive
from cachemark.runs.events.log import EventLog
from tests.headless import NEEDS_CHROMIUM, browser
from tests.runs.test_drive_lines import BEGIN, RESULT, TITLE, line_of, second
from tests.web.chromium import expect, opened
from tests.web.serving import served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["browser"]

pytestmark = NEEDS_CHROMIUM
# More than a curve has points, so that the page asks for merged ones.
SECONDS = 720
STEP = 4
# The first seconds are compared with this: all curves and tables are drawn.
SETTLED = 60
MAX_GROWTH_BYTES = 4_000_000


def in_use(page: "Page") -> dict[str, float]:
    """The bytes that the tab holds after a collection of garbage."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    metrics = session.send("Performance.getMetrics")["metrics"]
    session.detach()
    return {one["name"]: one["value"] for one in metrics}


def test_twelve_minutes_of_events_need_no_more_memory(
    browser: "Browser", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As fast as the page can take them.
    monkeypatch.setattr("cachemark.web.live.feed.INTERVAL_S", 0.0)
    monkeypatch.setattr("cachemark.web.pages.live.INTERVAL_S", 0.001)
    log, drive = EventLog(tmp_path), Drive()

    def write(line: dict[str, object]) -> None:
        for event in drive.events(line_of(line)):
            log.write(event)

    write({**BEGIN, "duration_ms": SECONDS * 1000})
    with served(tmp_path, drive=tmp_path) as visitor, opened(browser, visitor) as page:
        page.goto("/drive")
        expect(page.locator("#standing")).to_have_text("Running: before the first second")
        before: dict[str, float] = {}
        for number in range(1, SECONDS + 1):
            write(second(number))
            if number % STEP == 0:
                shown = f"Running: second {number} of {SECONDS}"
                page.wait_for_function(
                    "text => document.getElementById('standing').textContent === text", arg=shown
                )
            if number == SETTLED:
                before = in_use(page)
        after = in_use(page)
        write(RESULT)
        log.write(Ended(interrupted=False))
        expect(page.locator("#standing")).to_have_text("It has ended")
        expect(page.locator("#rankings h2")).to_have_text(TITLE)
        expect(page.locator(".uplot canvas")).to_have_count(3)
    assert after["JSHeapUsedSize"] - before["JSHeapUsedSize"] < MAX_GROWTH_BYTES
    assert after["Nodes"] - before["Nodes"] < 200
    assert after["JSEventListeners"] - before["JSEventListeners"] < 20
