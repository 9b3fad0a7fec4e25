"""Input of visitors: parameters of addresses and forms, and the sign of this server's forms."""

from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request

from cachemark.web.guard import same
from cachemark.web.settings import WebSettings

_MOST_BYTES = 256 * 1024
_MOST_FIELDS = 100
_CSRF_HEADER = "x-cachemark-csrf"


async def form_of(request: Request, settings: WebSettings) -> dict[str, str]:
    """The fields of a form of our own pages. Raises HTTPException for any other."""
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
    """Check a request of a script of our own pages. Raises HTTPException for any other."""
    _check_csrf(request.headers.get(_CSRF_HEADER, ""), settings)


def _check_csrf(given: str, settings: WebSettings) -> None:
    if not same(given, settings.csrf):
        raise HTTPException(403, "the form is of another page, or of a server that has ended")
