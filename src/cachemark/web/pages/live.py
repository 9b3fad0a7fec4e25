"""A running run or drive: its page, its state as JSON, and a stream of news."""

import asyncio
import threading
from collections.abc import AsyncIterator
from urllib.parse import quote

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from cachemark.web.context import context
from cachemark.web.layout import page
from cachemark.web.live.feed import INTERVAL_S, Feed
from cachemark.web.stored import stored_run

# The pause before a browser that has lost the server asks again.
_RETRY_MS = 1000
# A comment that keeps proxies from closing a silent stream.
_KEEP_ALIVE_S = 15.0


def live_page(request: Request) -> Response:
    """The page; its script asks for the rest."""
    here = context(request)
    run = stored_run(request.path_params["run"], here.settings.root)
    started_here = here.player.run == run.folder.name
    return page(
        here.settings,
        "live",
        address=f"/runs/{quote(run.folder.name)}",
        events=f"/runs/{quote(run.folder.name)}/live",
        title=run.folder.name,
        question=run.header.title,
        started_here=started_here,
        stopping=started_here and here.player.ends_within_s > 0,
    )


def drive_page(request: Request) -> Response:
    """The page of a drive, which has no stored run."""
    here = context(request)
    _feed(request)
    question = "One server, loaded by the native client"
    return page(
        here.settings, "live", address="", events="/drive", title="Drive", question=question,
        started_here=False, stopping=False,
    )  # fmt: skip


def live_state(request: Request) -> Response:
    """Everything so far."""
    return Response(msgspec.json.encode(_feed(request).snapshot()), media_type="application/json")


def live_events(request: Request) -> Response:
    """The messages after an event: the one of the address, or the last that a browser received."""
    given = request.headers.get("last-event-id") or request.query_params.get("after", "")
    after = int(given) if given.isascii() and given.isdigit() and len(given) < 16 else 0
    stream = _stream(_feed(request), after, context(request).closing)
    return StreamingResponse(stream, media_type="text/event-stream")


def _feed(request: Request) -> Feed:
    here = context(request)
    if "run" in request.path_params:
        return here.feeds.of(stored_run(request.path_params["run"], here.settings.root).folder)
    if here.settings.drive is None:
        raise HTTPException(
            404,
            "no drive is shown here; start one with "
            "`cachemark-engine drive … --json-lines | cachemark web --drive`",
        )
    return here.feeds.of(here.settings.drive)


async def _stream(feed: Feed, after: int, closing: threading.Event) -> AsyncIterator[bytes]:
    silent_s = 0.0
    yield b"retry: %d\n\n" % _RETRY_MS
    while not closing.is_set():
        number, messages = await run_in_threadpool(feed.messages, after)
        for at, (name, data) in enumerate(messages, 1):
            # Only the last message has a number: a browser without it gets all of them again.
            shown = b"id: %d\n" % number if at == len(messages) else b""
            yield b"event: %s\n%sdata: %s\n\n" % (name.encode(), shown, data)
        if messages and number == after:
            return  # nothing is new, and nothing will be
        after = number
        silent_s = 0.0 if messages else silent_s + INTERVAL_S
        if silent_s >= _KEEP_ALIVE_S:
            silent_s = 0.0
            yield b": nothing new\n\n"
        await asyncio.sleep(INTERVAL_S)
