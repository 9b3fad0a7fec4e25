"""The pages in a headless Chromium: one browser and one server for all tests of this file."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cachemark.runs.storage.archive import export_run
from cachemark.runs.storage.store import open_run
from tests.headless import NEEDS_CHROMIUM, PHONE, axe_response, browser
from tests.web.chromium import opened
from tests.web.serving import (
    BROKEN,
    FAULTS,
    HOSTILE,
    OTHER,
    RUN,
    Visitor,
    served,
    visitor,
)

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["browser", "visitor"]

pytestmark = NEEDS_CHROMIUM
PAGES = (
    "/runs", f"/runs/{RUN}", f"/runs/{HOSTILE}", f"/compare?baseline={RUN}&first=a&second=b",
    f"/compare?baseline={RUN}&first=a&other={OTHER}&second=b", "/compare", "/history?name=*",
    "/machine", "/import", "/new", "/login", f"/runs/{RUN}/live", f"/runs/{RUN}/report",
    f"/runs/{FAULTS}",
)  # fmt: skip
# Pages with a status of 400 or more, of which the browser itself complains.
PROBLEMS = (
    "/runs/nobody", f"/runs/{BROKEN}", f"/compare?baseline={RUN}&first=a&second=zz",
    f"/compare?baseline={RUN}&other={OTHER}&margin=much", "/history?name=nobody", "/drive",
)  # fmt: skip


def test_from_the_list_to_a_report(browser: "Browser", visitor: Visitor) -> None:
    with opened(browser, visitor) as page:
        page.goto("/")
        page.get_by_label("Client").select_option("c")
        page.get_by_role("button", name="Show").click()
        assert page.get_by_role("status").inner_text() == "1 of 6 runs"
        page.get_by_role("link", name=OTHER).click()
        assert page.locator("h1").inner_text() == "Which of the two is faster?"
        page.get_by_role("link", name="Report with charts").click()
        page.locator("figure.plot svg.wide").nth(1).wait_for(state="attached")


def test_two_clients_of_a_run_are_compared(browser: "Browser", visitor: Visitor) -> None:
    with opened(browser, visitor) as page:
        page.goto(f"/runs/{RUN}")
        page.locator("fieldset", has_text="Two clients").get_by_role("button").click()
        assert page.locator("h2").first.inner_text() == "b against a"
        assert page.get_by_role("status").inner_text() == "2 worse"
        # The same two, but the other one as it was in another run.
        other = page.get_by_role("group", name="Compared with it")
        other.get_by_label("Run").select_option(OTHER)
        page.get_by_role("button", name="Compare").click()
        assert (
            page.locator("h2").first.inner_text()
            == f"b of {OTHER} against a of {RUN} (before the upgrade)"
        )
        assert page.get_by_role("status").inner_text() == "2 no answer"
        for side in ("Baseline", "Compared with it"):
            page.get_by_role("group", name=side).get_by_label("Cell").fill("")
        page.get_by_role("button", name="Compare").click()
        assert (
            page.locator("h2").first.inner_text() == f"{OTHER} against {RUN} (before the upgrade)"
        )


def test_both_sides_are_planned_again_in_turns(browser: "Browser", visitor: Visitor) -> None:
    # The clients of the made store are not on this machine, which the form says.
    with opened(browser, visitor, ("the server responded with a status of 422",)) as page:
        page.goto(f"/compare?baseline={RUN}&first=a&other={OTHER}&second=b")
        page.get_by_role("button", name="Play both again in turns").click()
        page.wait_for_url("**/new")
        typed = page.get_by_label("Experiment instead of a suite").input_value()
        assert 'clients = ["a", "b"]' in typed
        assert "no client 'a'" in page.locator(".wrong").first.inner_text()


def test_an_export_is_imported(browser: "Browser", visitor: Visitor, tmp_path: Path) -> None:
    archive = export_run(open_run(RUN, visitor.settings.root), tmp_path)
    broken = tmp_path / "broken.zip"
    broken.write_bytes(archive.read_bytes()[:-30])
    with served(tmp_path / "results") as other, opened(browser, other) as page:
        page.goto("/import")
        page.get_by_label("File").set_input_files(archive)
        page.get_by_role("button", name="Import").click()
        page.wait_for_url(f"**/runs/{RUN}")
        assert "imported" in page.locator(".facts").inner_text()
        with page.expect_download() as download:
            page.get_by_role("link", name="Export").click()
        assert download.value.suggested_filename == f"{RUN}.cachemark.zip"
        saved = tmp_path / "saved.zip"
        download.value.save_as(saved)
        assert saved.read_bytes() == archive.read_bytes()


@pytest.mark.parametrize("path", [*PAGES, *PROBLEMS])
def test_axe_finds_nothing(browser: "Browser", visitor: Visitor, path: str) -> None:
    excused = ("the server responded with a status of 4",) if path in PROBLEMS else ()
    for scheme in ("light", "dark"):
        with opened(browser, visitor, excused, color_scheme=scheme) as page:
            page.goto(path)
            found = axe_response(page)
        told = [
            f"{scheme}: {v['id']}: {v['help']}: {node['html'][:200]}"
            for v in found["violations"]
            for node in v["nodes"]
        ]
        assert told == []


def test_a_phone_does_not_scroll_sideways(browser: "Browser", visitor: Visitor) -> None:
    excused = ("the server responded with a status of 4",)
    with opened(browser, visitor, excused, viewport=PHONE) as page:
        for path in (*PAGES, *PROBLEMS):
            page.goto(path)
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], path


def test_a_chosen_theme_holds_for_all_pages(browser: "Browser", visitor: Visitor) -> None:
    paper = "getComputedStyle(document.querySelector('.card')).backgroundColor"
    with opened(browser, visitor, color_scheme="light") as page:
        page.goto("/runs")
        assert page.evaluate(paper) == "rgb(255, 255, 255)"
        for name in ("system", "light"):
            page.get_by_role("button", name=f"Theme: {name}").click()
        page.goto("/machine")
        assert page.evaluate(paper) == "rgb(23, 27, 32)"
        assert page.get_by_role("button", name="Theme: dark").is_visible()


def test_by_keyboard_alone(browser: "Browser", visitor: Visitor) -> None:
    with opened(browser, visitor) as page:
        page.goto("/runs")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert page.url.endswith("#content")
        page.keyboard.press("Tab")
        page.keyboard.type("second")
        page.keyboard.press("Enter")
        page.wait_for_url("**text=second*")
        link = page.get_by_role("link", name=OTHER)
        link.focus()
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/runs/{OTHER}")


def test_two_cells_are_compared_by_keyboard_alone(browser: "Browser", visitor: Visitor) -> None:
    with opened(browser, visitor) as page:
        page.goto(f"/compare?baseline={RUN}")
        page.get_by_role("group", name="Baseline").get_by_label("Run").focus()
        for text in ("a", OTHER, "b"):
            page.keyboard.press("Tab")
            page.keyboard.type(text)
        page.keyboard.press("Enter")
        page.wait_for_url("**second=b*")
        assert (
            page.locator("h2").first.inner_text()
            == f"b of {OTHER} against a of {RUN} (before the upgrade)"
        )


def test_names_of_strangers_are_shown_and_not_obeyed(browser: "Browser", visitor: Visitor) -> None:
    with opened(browser, visitor) as page:
        for path in ("/runs", f"/runs/{HOSTILE}", f"/runs/{HOSTILE}/report", "/history?name=*"):
            page.goto(path)
            assert page.locator("img").count() == 0
            assert page.get_by_text("onerror=alert(1)").count() > 0, path


def test_parts_of_a_page_keep_their_distances(browser: "Browser", visitor: Visitor) -> None:
    with opened(browser, visitor) as page:
        page.goto(f"/runs/{RUN}")
        names = page.locator("ul.names li a").all()
        tops = {top["y"] for name in names if (top := name.bounding_box())}
        assert len(names) == 2
        assert len(tops) == 1  # of both columns
        page.goto(f"/runs/{FAULTS}")
        head, legend, item = (
            page.locator(css).first.bounding_box() for css in ("h1", ".legend", ".legend li")
        )
        assert head
        assert legend
        assert item
        assert head["y"] >= 24
        assert item["x"] == legend["x"]
