"""The token, shown once, becomes a cookie."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from cachemark.web.context import context
from cachemark.web.guard import COOKIE, form_of, same
from cachemark.web.layout import page


def login_page(request: Request) -> Response:
    """The form."""
    return page(context(request).settings, "login", problem="")


async def login(request: Request) -> Response:
    """Check the token, and give a session to whoever knows it."""
    settings = context(request).settings
    fields = await form_of(request, settings)
    if not settings.token or not same(fields.get("token", "").strip(), settings.token):
        return page(settings, "login", 403, problem="this is not the token")
    response = RedirectResponse("/", 303)
    response.set_cookie(
        COOKIE,
        settings.session,
        httponly=True,
        samesite="strict",
        secure=settings.scheme == "https",
    )
    return response
