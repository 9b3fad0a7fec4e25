"""Decides which requests to serve: by the host that they name, their origin, and their sender.

The decisions are pure functions of a request's headers. The middleware carries them out, and adds
headers that restrict the loads of a page.
"""

import asyncio
import contextlib
import ipaddress
import secrets
import time
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlsplit

import msgspec
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cachemark.web.layout import problem_page
from cachemark.web.settings import WebSettings

COOKIE = "cachemark"
# Time limits for the body of a request: without the token, and with it.
_OPEN_BODY_S = 10.0
_BODY_S = 600.0
SAFE_METHODS = ("GET", "HEAD")
# Pages for visitors without a session: they show how to get one.
_OPEN_PATHS = ("/login", "/favicon.ico")
_OPEN_FOLDER = "/assets/"
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # With `no-referrer` a browser would not send the origin of a form either.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why a request is not served."""

    status: int
    text: str
    remedy: str = ""


def refusal(
    method: str, path: str, headers: Mapping[str, str], settings: WebSettings
) -> Refusal | None:
    """Why a request is not served; None if it is. `headers` have lower-case names."""
    host = headers.get("host", "")
    if not _is_own_host(host, settings.names):
        return Refusal(
            status=421,
            text=f"this server is not {host or 'named'}",
            remedy="open it by its address, as cachemark printed it",
        )
    if method not in SAFE_METHODS:
        if settings.read_only and path != "/login":
            return Refusal(status=403, text="this server is read-only")
        # Another page cannot forge this header, and every browser sends it with a POST.
        if headers.get("origin", "") != f"{settings.scheme}://{host}":
            return Refusal(
                status=403,
                text="the request comes from another page, or from no page",
                remedy="use the form on this server's own page",
            )
    if not is_open(path) and not has_session(headers, settings):
        return Refusal(status=401, text="this page needs the token", remedy="open /login")
    return None


def is_open(path: str) -> bool:
    """Whether a page needs no session."""
    return path in _OPEN_PATHS or path.startswith(_OPEN_FOLDER)


def has_session(headers: Mapping[str, str], settings: WebSettings) -> bool:
    """Whether the visitor has shown the token, or needs none."""
    if not settings.token:
        return True
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return False
    return cookie is not None and same(cookie.value, settings.session)


def same(given: str, secret: str) -> bool:
    """Whether a text is the secret; takes the same time wherever they differ."""
    return secrets.compare_digest(given.encode(), secret.encode())


def _is_own_host(host: str, names: frozenset[str]) -> bool:
    """Whether a Host header names this server. DNS rebinding needs a name, not an IP address."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name.lower() in names
    return True


class Guard:
    """Middleware that refuses or serves each request, with a strict server's headers."""

    def __init__(self, app: ASGIApp, settings: WebSettings) -> None:
        self._app, self._settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_restricted(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refused = refusal(scope["method"], scope["path"], Headers(scope=scope), self._settings)
        app = self._app
        if refused is not None and refused.status == 401 and scope["method"] in SAFE_METHODS:
            app = RedirectResponse("/login", 303)
        elif refused is not None:
            app = problem_page(self._settings, refused.status, refused.text, refused.remedy)
        limit_s = _OPEN_BODY_S if is_open(scope["path"]) else _BODY_S
        with contextlib.suppress(ClientDisconnect):  # the peer is gone
            await app(scope, _within(limit_s, receive), send_restricted)


def _within(limit_s: float, receive: Receive) -> Receive:
    """The same, with a time limit for the body; messages after it may take any time."""
    until_s = time.monotonic() + limit_s
    whole = False

    async def limited() -> Message:
        nonlocal whole
        try:
            async with asyncio.timeout(None if whole else until_s - time.monotonic()):
                message = await receive()
        except TimeoutError as error:
            raise HTTPException(408, "the rest of the request did not come in time") from error
        whole = whole or not message.get("more_body", False)
        return message

    return limited


_MOST_BYTES = 256 * 1024
_MOST_FIELDS = 100
_CSRF_HEADER = "x-cachemark-csrf"


async def form_of(request: Request, settings: WebSettings) -> dict[str, str]:
    """The fields of a form from our own pages. Raises HTTPException for any other."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MOST_BYTES:
            raise HTTPException(413, f"the form has more than {_MOST_BYTES // 1024} KiB")
    try:
        fields = dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError as error:
        raise HTTPException(400, f"the form cannot be read: {error}") from error
    _check_csrf(fields.pop("csrf", ""), settings)
    return fields


def check_csrf_header(request: Request, settings: WebSettings) -> None:
    """Check that our own pages' script sent a request. Raises HTTPException otherwise."""
    _check_csrf(request.headers.get(_CSRF_HEADER, ""), settings)


def _check_csrf(given: str, settings: WebSettings) -> None:
    if not same(given, settings.csrf):
        raise HTTPException(403, "the form is from another page, or from an earlier server")
