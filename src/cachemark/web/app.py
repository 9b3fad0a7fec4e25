"""The application: routes, and the pages of errors."""

from importlib import resources

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from cachemark.model.errors import TrialError, UsageError
from cachemark.report import html
from cachemark.web.context import Context, context
from cachemark.web.guard import Guard
from cachemark.web.layout import page, problem_page
from cachemark.web.pages import (
    cell_history,
    comparison,
    import_run,
    live,
    login,
    machine,
    new_run,
    runs,
    site,
)
from cachemark.web.stored import NoStoreError, StillReadingError


def make_app(shared: Context) -> Guard:
    """The application behind its guard."""
    app = Starlette(
        routes=_routes(),
        exception_handlers={
            HTTPException: _http_problem,
            UsageError: _problem,
            TrialError: _problem,
            StillReadingError: _still_reading,
            Exception: _fault,
        },
    )
    app.state.context = shared
    return Guard(app, shared.settings)


def _routes() -> list[BaseRoute]:
    style_sheet = Response(html.style_sheet(), media_type="text/css")
    script = Response(html.script_text(), media_type="text/javascript")
    return [
        Route("/", RedirectResponse("/runs"), methods=["GET"]),
        Route("/login", login.login_page),
        Route("/login", login.login, methods=["POST"]),
        Route("/runs", runs.run_list),
        Route("/runs/{run}", runs.run_page),
        Route("/runs/{run}/report", runs.report_page),
        Route("/runs/{run}/report/{form}", runs.report_file),
        Route("/runs/{run}/resilience/{file}", runs.resilience_page),
        Route("/runs/{run}/archive", runs.archive),
        Route("/runs/{run}/live", live.live_page),
        Route("/runs/{run}/live/state", live.live_state),
        Route("/runs/{run}/live/events", live.live_events),
        Route("/drive", live.drive_page),
        Route("/drive/state", live.live_state),
        Route("/drive/events", live.live_events),
        Route("/runs/{run}/stop", new_run.stop, methods=["POST"]),
        Route("/runs/{run}/resume", new_run.resume, methods=["POST"]),
        Route("/new", new_run.new_run_page),
        Route("/new", new_run.new_run, methods=["POST"]),
        Route("/compare", comparison.comparison_page),
        Route("/history", cell_history.history_page),
        Route("/machine", machine.machine_page),
        Route("/machine/doctor", machine.doctor_page, methods=["POST"]),
        Route("/import", import_run.import_page),
        Route("/import", import_run.import_archive, methods=["POST"]),
        Mount("/docs", site.site),
        Route("/favicon.ico", RedirectResponse("/assets/icon.svg"), methods=["GET"]),
        Route("/assets/report.css", style_sheet, methods=["GET"]),
        Route("/assets/report.js", script, methods=["GET"]),
        Mount("/assets", StaticFiles(directory=str(resources.files("cachemark.web") / "assets"))),
    ]


async def _http_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return problem_page(context(request).settings, error.status_code, error.detail)


async def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, UsageError | TrialError)
    status = 404 if isinstance(error, NoStoreError) else 422
    return problem_page(context(request).settings, status, error.text, error.remedy)


async def _still_reading(request: Request, error: Exception) -> Response:
    return page(context(request).settings, "reading", 503, text=str(error))


async def _fault(request: Request, error: Exception) -> Response:
    text = "a fault of cachemark: its terminal shows what happened"
    return problem_page(context(request).settings, 500, f"{text} ({type(error).__name__})")
