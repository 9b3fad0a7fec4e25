"""Cells over time, machines and versions."""

from starlette.requests import Request
from starlette.responses import Response

from cachemark.model.errors import UsageError
from cachemark.report.history import HistoryQuery, query_history
from cachemark.report.history.run_list import list_runs
from cachemark.report.history.tables import document
from cachemark.web.context import context
from cachemark.web.layout import page

_FIELDS = ("name", "server", "host")


def history_page(request: Request) -> Response:
    """The form, and the history of the requested cells."""
    settings = context(request).settings
    given = {name: request.query_params.get(name, "").strip() for name in _FIELDS}
    problem, history = "", None
    with context(request).index.open() as index:
        known = list_runs(index)
        if given["name"]:
            try:
                history = query_history(index, _query(given))
            except UsageError as error:
                problem = str(error)
    return page(
        settings,
        "history",
        400 if problem else 200,
        given=given,
        problem=problem,
        clients=sorted({name for listed in known for name in listed.clients}),
        parts=document(history).parts_on("page") if history else [],
    )


def _query(given: dict[str, str]) -> HistoryQuery:
    def texts(name: str) -> tuple[str, ...]:
        return (given[name],) if given[name] else ()

    return HistoryQuery(names=texts("name"), server=texts("server"), host=texts("host"))
