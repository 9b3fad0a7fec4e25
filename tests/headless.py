"""A headless Chromium for tests of pages."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

# All processes that run tests read their files, and few start a browser: it is imported there.
if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
# Marks of a module whose tests start it.
NEEDS_CHROMIUM = [
    pytest.mark.skipif(_CHROMIUM is None, reason="no Chromium: apt-get install chromium"),
    pytest.mark.slow("it starts a browser"),
]
DESK = {"width": 1280, "height": 900}
PHONE = {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    with sync_playwright() as playwright:
        # As root, as in a container, Chromium has no sandbox.
        args = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=args)
        yield browser
        browser.close()


@contextmanager
def page_at(browser: "Browser", address: str, **options: Any) -> "Iterator[Page]":
    """A page in a context of its own, which is closed with it."""
    context = browser.new_context(**options)
    try:
        page = context.new_page()
        page.goto(address)
        yield page
    finally:
        context.close()


def axe_response(page: "Page") -> dict[str, Any]:
    """Findings of axe-core on a page: `violations` and `passes`."""
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415

    return Axe().run(page).response
