"""The documentation site in a headless Chromium, served with a strict content security policy."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from tests.headless import DESK, NEEDS_CHROMIUM, PHONE, axe_response, browser, page_at

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["browser"]

pytestmark = NEEDS_CHROMIUM
# Tables are aligned by style attributes.
POLICY = (
    "default-src 'none'; script-src 'self'; worker-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; font-src 'self'; style-src 'self' 'unsafe-inline'"
)
# Commands and their output; tables; other languages of code.
PAGES = ["tutorial", "experiment", "shared-store"]


class _Handler(SimpleHTTPRequestHandler):
    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", POLICY)
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()
    thread.join()


def serious_findings(page: "Page") -> list[str]:
    """Serious and critical findings of axe-core, with the first element of each."""
    violations = axe_response(page)["violations"]
    return [
        f"{finding['id']}: {finding['nodes'][0]['html']}"
        for finding in violations
        if finding["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible_and_ask_no_other_host(
    browser: "Browser", address: str, scheme: Literal["light", "dark"]
) -> None:
    requests: list[str] = []
    messages: list[str] = []
    findings: list[str] = []
    options = {"viewport": DESK, "color_scheme": scheme, "reduced_motion": "reduce"}
    with page_at(browser, "about:blank", **options) as page:
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        for name in PAGES:
            page.goto(f"{address}{name}.html")
            findings += [f"{name}: {text}" for text in serious_findings(page)]
    assert findings == []
    assert messages == []
    elsewhere = [url for url in requests if not url.startswith((address, "blob:", "data:"))]
    assert elsewhere == []
    assert len(requests) > len(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_a_phone_scrolls_pages_down_only(browser: "Browser", address: str, name: str) -> None:
    with page_at(browser, f"{address}{name}.html", viewport=PHONE) as page:
        wider = page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
    assert wider <= 0


def test_the_search_finds_a_page(browser: "Browser", address: str) -> None:
    with page_at(browser, f"{address}index.html", viewport=DESK) as page:
        search = page.get_by_role("combobox", name="Search")
        # The page makes the dialog when its scripts have run.
        search.wait_for(state="attached")
        page.keyboard.press("Control+k")
        search.fill("coordinated omission")
        hits = page.locator("a[href*='methodology-times.html']")
        hits.filter(has_text="Closed loop").first.wait_for()
