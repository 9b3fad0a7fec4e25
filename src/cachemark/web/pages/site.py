"""The documentation, as `make docs` builds it: of the checkout, or of the package."""

from starlette.requests import Request
from starlette.staticfiles import StaticFiles
from starlette.types import Message, Receive, Scope, Send

from cachemark.host.shipped_folders import shipped_folder
from cachemark.model.errors import UsageError
from cachemark.web.context import context
from cachemark.web.layout import problem_page

# Its search is a worker, and attributes align its tables. The rest is as strict as other pages.
_POLICY = (
    b"default-src 'none'; script-src 'self'; worker-src 'self'; connect-src 'self'; "
    b"img-src 'self' data:; style-src 'self' 'unsafe-inline'; font-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


async def site(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve a page or a file of the site, or say how to build it."""
    try:
        folder = shipped_folder("site", "CACHEMARK_DOCS") / "html"
    except UsageError:
        folder = None
    if folder is None or not folder.is_dir():
        app = problem_page(
            context(Request(scope)).settings,
            404,
            "the documentation is not built here",
            "run `make docs` in the checkout, or install a package of `make dist`, which has it",
        )
        await app(scope, receive, send)
        return

    async def send_with_policy(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], (b"content-security-policy", _POLICY)]
        await send(message)

    await StaticFiles(directory=folder, html=True)(scope, receive, send_with_policy)
