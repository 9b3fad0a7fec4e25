"""A headless Chromium, and pages that must be quiet and ask no other host."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.web.serving import Visitor

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DESK = {"width": 1280, "height": 900}
PHONE = {"width": 360, "height": 740}
# The server yields to everything else, so a busy machine makes it slow.
_TIMEOUT_MS = 120_000
expect.set_options(timeout=_TIMEOUT_MS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # As root, as in a container, Chromium has no sandbox.
        args = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=args)
        yield browser
        browser.close()


@contextmanager
def opened(
    browser: Browser, visitor: Visitor, excused: tuple[str, ...] = (), **options: Any
) -> Iterator[Page]:
    """A page in a context of its own. It must ask no other host, and complain of nothing.

    `excused`: what a complaint may contain.
    """
    context = browser.new_context(base_url=visitor.address, **{"viewport": DESK, **options})
    context.set_default_timeout(_TIMEOUT_MS)
    page = context.new_page()
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    try:
        yield page
    finally:
        context.close()
    assert [url for url in asked if not url.startswith((visitor.address, "data:", "blob:"))] == []
    unexpected = [text for text in said if not any(part in text for part in excused)]
    assert unexpected == [], unexpected
