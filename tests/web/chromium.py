"""Pages in a headless Chromium that must be quiet and ask no other host."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.headless import DESK
from tests.web.serving import Visitor

# The server yields to everything else, so a busy machine makes it slow.
_TIMEOUT_MS = 120_000
if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page
    from playwright.sync_api._generated import LocatorAssertions


def expect(found: "Locator") -> "LocatorAssertions":
    """A statement about a part of a page has to become true."""
    from playwright.sync_api import expect as expect_soon  # noqa: PLC0415

    expect_soon.set_options(timeout=_TIMEOUT_MS)
    return expect_soon(found)


@contextmanager
def opened(
    browser: "Browser", visitor: Visitor, excused: tuple[str, ...] = (), **options: Any
) -> "Iterator[Page]":
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
