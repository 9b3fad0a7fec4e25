"""A live run in a headless Chromium. This process plays the run: it writes the events."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from cachemark.model.events import Ended, Position, Ranked, RankedPlace
from cachemark.runs.events.log import EventLog
from tests.builders.stored_runs import kept, made_header
from tests.headless import NEEDS_CHROMIUM, PHONE, axe_response, browser
from tests.web.chromium import expect, opened
from tests.web.serving import Visitor, served
from tests.web.test_live import started, trial
from tests.web.test_live_ranking import in_turns

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["browser"]

pytestmark = NEEDS_CHROMIUM
PAGE = "/runs/now/live"


@pytest.fixture
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    root = tmp_path_factory.mktemp("store")
    kept(root, made_header("now"), [])
    with served(root) as visitor:
        yield visitor


@pytest.fixture
def log(visitor: Visitor) -> EventLog:
    log = EventLog(visitor.settings.root / "now")
    log.write(started())
    log.write(Position(number=1, total=8, what="a"))
    return log


def test_a_run_settles_before_two_viewers_and_survives_reload(
    browser: "Browser", visitor: Visitor, log: EventLog
) -> None:
    with opened(browser, visitor) as page, opened(browser, visitor, color_scheme="dark") as other:
        page.goto(PAGE)
        other.goto(PAGE)
        expect(page.locator("#standing")).to_have_text("Running: trial 1 of 8")
        for block in range(3):
            log.write(trial("a", block, 100.0 + block))
            log.write(trial("b", block, 200.0 + block))
        log.write(trial("<img src=x>", 0, None))
        log.write(Position(number=5, total=8, what="b"))
        for viewer in (page, other):
            expect(viewer.locator("#standing")).to_have_text("Running: trial 5 of 8")
            expect(viewer.locator("#rankings tbody th")).to_have_text(["b", "a", "<img src=x>"])
            expect(viewer.locator("#problem-list li")).to_contain_text(["1 × INVALID"])
            expect(viewer.locator(".uplot canvas")).to_have_count(3)
            assert viewer.locator("img").count() == 0
        page.reload()
        log.write(trial("b", 3, 203.0))
        log.write(Ended(interrupted=False))
        for viewer in (page, other):
            expect(viewer.locator("#standing")).to_have_text("It has ended")
            expect(viewer.locator("#rankings tbody tr").first).to_contain_text("4 of 4")


def test_a_new_run_is_shown_at_its_first_event(browser: "Browser", visitor: Visitor) -> None:
    with opened(browser, visitor) as page:
        page.goto(PAGE)
        expect(page.locator("#standing")).to_have_text("This run has recorded nothing yet")
        expect(page.get_by_role("button", name="Resume")).to_be_hidden()
        EventLog(visitor.settings.root / "now").write(started())
        expect(page.locator("#standing")).to_have_text("Running: before the first trial")


def test_ratios_are_those_to_the_first_below_a_yardstick(
    browser: "Browser", visitor: Visitor
) -> None:
    work = ["embedded", "mixed", "one"]
    log = EventLog(visitor.settings.root / "now")
    log.write(in_turns())
    places = [
        # One sitting gives no interval: the yardstick looks like a first one.
        RankedPlace(name="native", cell=["native", *work], value=150.0),
        RankedPlace(name="best", cell=["best", *work], value=100.0, is_first=True),
        RankedPlace(name="second", cell=["second", *work], value=80.0, low=75.0, high=85.0),
    ]
    log.write(Ranked(title="embedded · mixed · one", by_rate=True, at=0, places=places))
    with opened(browser, visitor) as page:
        page.goto(PAGE)
        ratios = page.locator("#rankings tbody tr td:nth-child(3)")
        expect(ratios).to_have_text(["1.50", "1", "0.80 (0.75–0.85)"])


def test_a_table_that_is_drawn_anew_stays_focused_and_scrolled(
    browser: "Browser", visitor: Visitor, log: EventLog
) -> None:
    log.write(trial("a-client-with-a-long-name", 0, 100.0))
    with opened(browser, visitor, viewport=PHONE) as page:
        page.goto(PAGE)
        table = page.get_by_role("group", name="Ranking")
        expect(table.locator("tbody tr")).to_have_count(1)
        table.focus()
        table.evaluate("table => { table.scrollLeft = 90; }")
        log.write(trial("another", 0, 200.0))
        expect(table.locator("tbody tr")).to_have_count(2)
        assert table.evaluate("table => document.activeElement === table")
        assert table.evaluate("table => table.scrollLeft") == 90


def test_of_many_clients_the_best_have_curves(
    browser: "Browser", visitor: Visitor, log: EventLog
) -> None:
    for number in range(14):
        log.write(trial(f"client-{number}", 0, 100.0 + number))
    with opened(browser, visitor) as page:
        page.goto(PAGE)
        expect(page.locator("#drawn")).to_have_text("The curves show the 12 best of 14 so far.")
        shown = page.locator("#rate .u-legend .u-label").all_inner_texts()
        assert shown[1:] == [f"client-{number}" for number in range(2, 14)]
        # One that was not drawn becomes the best.
        log.write(trial("client-0", 1, 9000.0))
        expect(page.locator("#rate .u-legend")).to_contain_text("client-0")
        expect(page.locator("#rankings tbody tr")).to_have_count(14)


# Everything that canvases draw: the words, and the colour and the dash of each line.
RECORDED = """
window.drawn = { words: [], lines: [] };
const context = CanvasRenderingContext2D.prototype;
const { fillText, stroke } = context;
context.fillText = function (text, ...rest) {
  drawn.words.push(text);
  return fillText.call(this, text, ...rest);
};
context.stroke = function (...rest) {
  drawn.lines.push([this.strokeStyle, `${this.getLineDash()}`]);
  return stroke.apply(this, rest);
};
"""


def test_twelve_curves_keep_apart_and_axes_have_units(
    browser: "Browser", visitor: Visitor, log: EventLog
) -> None:
    for number in range(12):
        for block in range(3):
            log.write(trial(f"client-{number}", block, 100_000.0 + 1000 * number + block))
    with opened(browser, visitor) as page:
        page.add_init_script(RECORDED)
        page.goto(PAGE)
        expect(page.locator("#p99 .u-legend .u-label")).to_have_count(13)
        page.wait_for_function("drawn.words.some((text) => text.endsWith('s'))")
        markers = page.locator("#rate .u-series:not(:first-child) .u-marker")
        frames = "all => all.map((one) => one.style.borderColor + one.style.borderStyle)"
        assert len(set(markers.evaluate_all(frames))) == 12
        lines = {(colour, dash) for colour, dash in page.evaluate("drawn.lines")}
        dashed = {colour for colour, dash in lines if dash}
        assert len(dashed) == 6
        # Each of these colours has a line without dashes, too.
        assert dashed <= {colour for colour, dash in lines if not dash}
        figures = [text for text in page.evaluate("drawn.words") if text[:1].isdigit()]
        assert any(text.endswith(" k ops/s") for text in figures), figures
        assert any(text.endswith(("µs", "ms")) for text in figures), figures
        assert not [text for text in figures if text.endswith(" k")]


def test_axe_finds_nothing_and_a_phone_does_not_scroll_sideways(
    browser: "Browser", visitor: Visitor, log: EventLog
) -> None:
    for number in range(8):
        log.write(trial(f"language/a-client-with-a-long-name-{number}", 0, 100.0 + number))
        log.write(trial(f"language/a-client-with-a-long-name-{number}", 1, 110.0 + number))
    for scheme in ("light", "dark"):
        with opened(browser, visitor, viewport=PHONE, color_scheme=scheme) as page:
            page.goto(PAGE)
            expect(page.locator("#rankings tbody tr")).to_have_count(8)
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
            found = axe_response(page)["violations"]
        assert [f"{v['id']}: {v['nodes'][0]['html'][:200]}" for v in found] == []
