"""The list of runs, one run's answers, its report, and its files."""

import math
from collections.abc import Iterable
from contextlib import ExitStack
from urllib.parse import quote, urlencode

from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response

from cachemark.host.temporary import temporary_folder
from cachemark.report import html
from cachemark.report.absences import absence_text
from cachemark.report.conclusions import headline
from cachemark.report.formats import render_files
from cachemark.report.history.run_list import UNREADABLE, ListedRun, RunFilter, list_runs, matches
from cachemark.report.resilience.html import INDEX
from cachemark.report.tables import group_title, ranking_table, self_comparison
from cachemark.runs.resilience.stored import open_resilience_run, resilience_run_names
from cachemark.runs.storage.archive import export_run
from cachemark.web.context import context
from cachemark.web.layout import page
from cachemark.web.stored import stored_run

_ON_A_PAGE = 100
# A page with its own styles, and without scripts.
_STATIC_PAGE = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
_VERDICTS = ("VALID", "INVALID", "OVERLOAD", "NON_STATIONARY", "failed", "unsupported", UNREADABLE)
# Forms of a report that are files for other programs.
_FILES = {"markdown": "text/markdown", "csv": "text/csv", "json": "application/json"}


def run_list(request: Request) -> Response:
    """All runs that match the filter, latest first."""
    settings = context(request).settings
    given = request.query_params
    wanted = RunFilter(**{name: given.get(name, "") for name in RunFilter.__struct_fields__})
    with context(request).index.open() as index:
        known = list_runs(index)
    matching = [listed for listed in known if matches(listed, wanted)]
    last = max(1, math.ceil(len(matching) / _ON_A_PAGE))
    number = min(last, max(1, _whole(given.get("page", ""))))
    return page(
        settings,
        "runs",
        runs=matching[(number - 1) * _ON_A_PAGE : number * _ON_A_PAGE],
        count=len(matching),
        known=len(known),
        wanted=wanted,
        choices=_choices(known),
        number=number,
        last=last,
        query=urlencode({n: v for n, v in given.items() if n in RunFilter.__struct_fields__}),
    )


def _whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 1


def _choices(known: list[ListedRun]) -> dict[str, list[str]]:
    """The choices for each field of the filter, from the stored runs."""

    def sorted_names(names: Iterable[str]) -> list[str]:
        return sorted(set(names) - {""})

    verdicts = {verdict for listed in known for verdict in listed.verdicts}
    return {
        "suite": sorted_names(listed.run.experiment for listed in known),
        "client": sorted_names(name for listed in known for name in listed.clients),
        "server": sorted_names(name for listed in known for name in listed.servers),
        "host": sorted_names(listed.run.host for listed in known),
        "verdict": [verdict for verdict in _VERDICTS if verdict in verdicts],
    }


def run_page(request: Request) -> Response:
    """A run's answers and rankings. The whole report with its charts is a page of its own."""
    here = context(request)
    name = request.path_params["run"]
    if name in resilience_run_names(here.settings.root):
        return RedirectResponse(f"/runs/{quote(name)}/resilience/{INDEX}")
    run = stored_run(name, here.settings.root)
    report = here.reports.report(run)
    played = [row.cell for row in report.trials]
    return page(
        here.settings,
        "run",
        run=run,
        live=here.feeds.of(run.folder).standing(),
        report=report,
        headline=headline(report),
        groups=[
            (group_title(group), ranking_table(group), self_comparison(group))
            for group in report.groups
        ],
        absences=[absence_text(absence) for absence in report.absences],
        names={
            factor: sorted({getattr(cell, factor) for cell in played})
            for factor in ("client", "server", "load")
        },
        files=list(_FILES),
    )


def resilience_page(request: Request) -> Response:
    """A page of a run of `resilience`: all of its clients, or one of them."""
    here = context(request)
    name, file = request.path_params["run"], request.path_params["file"]
    if name not in resilience_run_names(here.settings.root):
        raise HTTPException(404, f"there is no run of `resilience` {name!r} in this store")
    text = here.reports.resilience_pages(open_resilience_run(name, here.settings.root)).get(file)
    if text is None:
        raise HTTPException(404, f"{name} has no page {file!r}")
    return HTMLResponse(text, headers={"content-security-policy": _STATIC_PAGE})


def report_page(request: Request) -> Response:
    """A run's report as `cachemark report --format html` writes it."""
    here = context(request)
    run = stored_run(request.path_params["run"], here.settings.root)
    policy = f"{html.content_policy()}; frame-ancestors 'none'"
    return HTMLResponse(here.reports.page(run), headers={"content-security-policy": policy})


def report_file(request: Request) -> Response:
    """A run's report in a form for other programs."""
    form = request.path_params["form"]
    if form not in _FILES:
        raise HTTPException(404, f"there is no form {form!r} of a report")
    run = stored_run(request.path_params["run"], context(request).settings.root)
    ((name, text),) = render_files(form, run, None).items()
    shown = f"attachment; filename*=UTF-8''{quote(f'{run.folder.name}-{name}')}"
    return Response(text, media_type=_FILES[form], headers={"content-disposition": shown})


def archive(request: Request) -> Response:
    """A run as `cachemark export` writes it."""
    run = stored_run(request.path_params["run"], context(request).settings.root)
    with ExitStack() as stack:
        path = export_run(run, stack.enter_context(temporary_folder()))
        # The folder is removed when the file has been sent.
        after = BackgroundTask(stack.pop_all().close)
    return FileResponse(path, filename=path.name, media_type="application/zip", background=after)
