"""The HTML report in a headless Chromium: offline, dark, narrow, by keyboard, on paper."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from cachemark.report import html
from cachemark.report.jmh import RENDERERS as JMH_RENDERERS
from cachemark.report.model import Report
from tests.builders.full_report import HOSTILE, report
from tests.builders.jmh_report import original_report
from tests.headless import DESK, NEEDS_CHROMIUM, PHONE, axe_response, browser, page_at

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["browser"]

pytestmark = NEEDS_CHROMIUM


@pytest.fixture(scope="module")
def made() -> Report:
    return report()


@pytest.fixture(scope="module")
def address(made: Report, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(html.render(made, None), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def desk(browser: "Browser", address: str) -> "Iterator[Page]":
    with page_at(browser, address, viewport=DESK) as page:
        yield page


def unfold(page: "Page") -> None:
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")


def test_nothing_is_asked_of_a_network_and_nothing_goes_wrong(
    browser: "Browser", address: str
) -> None:
    asked: list[str] = []
    said: list[str] = []
    with page_at(browser, "about:blank", offline=True, viewport=DESK) as page:
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(address)
        unfold(page)
        page.mouse.wheel(0, 20_000)
        page.wait_for_load_state("networkidle")
    assert asked == [address]
    assert said == []


def test_words_of_a_worker_are_shown_and_not_obeyed(desk: "Page") -> None:
    unfold(desk)
    assert desk.get_by_text(HOSTILE).count() >= 2  # as a reason, and as what could not run
    assert desk.locator("img").count() == 0
    assert desk.title().startswith("emcache")


def test_every_part_is_there(desk: "Page", made: Report) -> None:
    headings = desk.locator("h2").all_inner_texts()
    for part in (
        "Before you publish a figure",
        "Results",
        "Factor by factor",
        "One by one",
        "From load to load",
        "Memory",
        "Beside the published figures",
        "The workers’ own loops",
        "Audit",
        "Not played",
        "Trials",
        "Environment",
        "How to read this",
        "Data",
    ):
        assert part in headings
    assert desk.locator("h1").inner_text() == made.header.experiment.question
    assert "python/fast is first in all 4 comparisons" in desk.locator(".headline").inner_text()
    titles = desk.locator("details.group").first.locator("h4").all_text_contents()
    assert titles == [
        "Throughput",
        "CPU time per operation",
        "Response time by percentile",
        "Throughput, block by block",
        "Throughput, second by second",
        "Server memory, second by second",
        "All clients",
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser: "Browser", address: str, scheme: str) -> None:
    """Contrast, names, landmarks, tables, order of headings: the rules of axe-core, all of them."""
    with page_at(browser, address, viewport=DESK, color_scheme=scheme) as page:
        unfold(page)
        found = axe_response(page)
    told = [
        f"{v['id']}: {v['help']}: {node['html'][:200]}"
        for v in found["violations"]
        for node in v["nodes"]
    ]
    assert told == []
    assert len(found["passes"]) > 20


def test_axe_finds_nothing_on_the_page_of_jmh(browser: "Browser", tmp_path: Path) -> None:
    path = tmp_path / "jmh.html"
    path.write_text(JMH_RENDERERS["html"](original_report(), None), encoding="utf-8")
    for viewport in (DESK, PHONE):
        with page_at(browser, path.as_uri(), viewport=viewport) as page:
            unfold(page)
            assert [found["id"] for found in axe_response(page)["violations"]] == []
            assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]


def test_a_chart_says_what_it_shows(desk: "Page") -> None:
    labels = desk.locator("figure svg").evaluate_all(
        "all => all.map(one => [one.getAttribute('role'), one.getAttribute('aria-label')])"
    )
    assert labels
    assert all(role == "img" and len(label) > 40 for role, label in labels)
    unfold(desk)
    assert desk.locator("figure.plot").count() == desk.locator("figure.plot table").count()


# The contrast of a text with the paper of its chart, by the definition of WCAG 2.
_CONTRAST = """() => {
  const canvas = document.createElement('canvas').getContext('2d');
  const light = colour => {
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map(v => {
      v /= 255;
      return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  return [...document.querySelectorAll('figure.plot')].flatMap(figure => {
    const paper = light(getComputedStyle(figure).backgroundColor);
    return [...figure.querySelectorAll('svg.wide text')].map(text => {
      const [a, b] = [paper, light(getComputedStyle(text).fill)].sort((x, y) => y - x);
      return [(a + 0.05) / (b + 0.05), text.textContent];
    });
  });
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_in_charts_has_contrast(browser: "Browser", address: str, scheme: str) -> None:
    """axe leaves text in SVG alone, so it is reckoned here."""
    with page_at(browser, address, viewport=DESK, color_scheme=scheme) as page:
        found = page.evaluate(_CONTRAST)
    assert len(found) > 100
    assert [text for ratio, text in found if ratio < 4.5] == []


def test_dark_is_dark_and_the_button_changes_it(browser: "Browser", address: str) -> None:
    paper = "getComputedStyle(document.querySelector('figure.plot')).backgroundColor"
    with page_at(browser, address, viewport=DESK, color_scheme="dark") as page:
        assert page.evaluate(paper) == "rgb(23, 27, 32)"
        page.get_by_role("button", name="Theme: system").click()
        assert page.evaluate(paper) == "rgb(255, 255, 255)"
        page.get_by_role("button", name="Theme: light").click()
        assert page.evaluate(paper) == "rgb(23, 27, 32)"


@pytest.mark.parametrize("width", [320, 360, 768])
def test_a_narrow_screen_does_not_scroll_sideways(
    browser: "Browser", address: str, width: int
) -> None:
    with page_at(browser, address, viewport={"width": width, "height": 740}) as page:
        unfold(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        # A figure in a chart is as large as the page's small print, not a drawing made smaller.
        if width < 640:
            smallest = page.locator("figure.plot svg.narrow").first.evaluate(
                "one => one.getBoundingClientRect().width / one.viewBox.baseVal.width"
            )
            assert smallest > 0.75


def test_a_long_key_does_not_widen_the_page(desk: "Page") -> None:
    for text in ("main p", "main li", "main h3"):
        desk.evaluate(
            "name => document.querySelectorAll(name).forEach("
            "one => { one.textContent = 'Long'.repeat(60) })",
            text,
        )
        assert desk.evaluate("document.documentElement.scrollWidth") <= DESK["width"], text


# Pieces of the first table's words that are in two lines: a name breaks at its marks only.
_BROKEN_PIECES = """() => [...document.querySelectorAll('.firsts td.words')].flatMap(cell => {
  cell.textContent = 'python/pymemcache against ruby/remix-stash';
  const text = cell.firstChild, pieces = [...text.data.matchAll(/[a-z]+/g)];
  return pieces.filter(piece => {
    const range = document.createRange();
    range.setStart(text, piece.index);
    range.setEnd(text, piece.index + piece[0].length);
    return range.getClientRects().length > 1;
  }).map(piece => piece[0]);
})"""


def test_a_name_is_not_broken_within_a_word(browser: "Browser", address: str) -> None:
    for width in (1100, 700, PHONE["width"]):
        with page_at(browser, address, viewport={"width": width, "height": 900}) as page:
            assert page.locator(".firsts td.words").count()
            assert page.evaluate(_BROKEN_PIECES) == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_by_keyboard_alone(desk: "Page") -> None:
    desk.keyboard.press("Tab")
    assert desk.evaluate("document.activeElement.className") == "skip"
    desk.keyboard.press("Enter")
    assert desk.url.endswith("#answers")
    desk.keyboard.press("Tab")
    assert desk.evaluate("!!document.activeElement.closest('#answers')")

    summary = desk.locator("details.group > summary").first
    was = desk.locator("details.group").first.get_attribute("open")
    summary.focus()
    desk.keyboard.press("Enter")
    assert desk.locator("details.group").first.get_attribute("open") != was
    unfold(desk)
    head = desk.locator("table[data-sortable] thead button").first
    head.focus()
    desk.keyboard.press("Enter")
    assert head.locator("..").get_attribute("aria-sort") == "ascending"
    outline = desk.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_a_table_is_sorted_by_its_figures(desk: "Page") -> None:
    table = desk.locator("details.group table[data-sortable]").first
    table.locator("thead button", has_text="p50").click()
    names = table.locator("tbody th").all_inner_texts()
    assert names == ["native", "python/fast", "python/slow"]
    table.locator("thead button", has_text="p50").click()
    assert table.locator("tbody th").all_inner_texts() == names[::-1]


def test_a_link_unfolds_what_it_leads_to(desk: "Page") -> None:
    desk.evaluate("document.querySelectorAll('details').forEach(d => { d.open = false })")
    desk.locator("#answers tbody a").last.click()
    assert desk.locator("details.group").last.get_attribute("open") is not None


def test_the_data_can_be_saved_without_a_script(
    browser: "Browser", address: str, made: Report, tmp_path: Path
) -> None:
    options = {"java_script_enabled": False, "accept_downloads": True, "viewport": DESK}
    with page_at(browser, address, **options) as page:
        assert page.locator("#theme").is_hidden()
        with page.expect_download() as download:
            page.locator("a[download$='.json']").click()
        download.value.save_as(tmp_path / "saved.json")
        with page.expect_download() as table:
            page.locator("a[download$='.csv']").click()
        table.value.save_as(tmp_path / "saved.csv")
    saved = msgspec.json.decode((tmp_path / "saved.json").read_bytes())
    assert saved["header"]["id"] == made.header.id
    assert len(saved["trials"]) == len(made.trials)
    assert (tmp_path / "saved.csv").read_text().startswith("client,library,")


def test_a_chart_can_be_saved(desk: "Page", tmp_path: Path) -> None:
    figure = desk.locator("figure.plot").first
    figure.locator("summary").click()
    with desk.expect_download() as download:
        figure.get_by_role("button", name="Save as SVG").click()
    download.value.save_as(tmp_path / "chart.svg")
    assert (tmp_path / "chart.svg").read_text().startswith("<svg")


def test_paper_has_all_that_is_folded_and_no_controls(browser: "Browser", address: str) -> None:
    with page_at(browser, address, viewport=DESK, color_scheme="dark") as page:
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = false })")
        page.emulate_media(media="print")
        group = page.locator("details.group").last
        table = group.locator(":scope > .card table").first
        assert table.bounding_box()["height"] > 20  # type: ignore[index]
        assert page.locator("header.bar").is_hidden()
        assert page.locator("body").evaluate("of => getComputedStyle(of).backgroundColor") == (
            "rgb(255, 255, 255)"
        )
        paper = page.pdf(format="A4", print_background=True)
    assert paper.startswith(b"%PDF")
    assert 3 <= paper.count(b"/Type /Page\n") <= 16
