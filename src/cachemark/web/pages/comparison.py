"""The comparison of two runs, or of two clients, servers or loads of one run."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from cachemark.model.errors import UsageError
from cachemark.report.compare import CellFilter, ComparisonReport
from cachemark.report.compare.stored import compare_stored
from cachemark.report.compare.tables import common_fields, head, tables, tally, text_lists
from cachemark.report.formats import fits_together
from cachemark.runs.store import run_names
from cachemark.web.context import context
from cachemark.web.layout import page
from cachemark.web.stored import stored_run

FACTORS = ("client", "server", "load")


class ComparisonForm(msgspec.Struct, frozen=True, kw_only=True):
    """What was typed. Without `other`, `first` and `second` are compared within the run."""

    baseline: str = ""
    other: str = ""
    factor: str = "client"
    first: str = ""
    second: str = ""
    margin: str = ""


def comparison_page(request: Request) -> Response:
    """The form, and the answers if it was filled in."""
    settings = context(request).settings
    given = request.query_params
    form = ComparisonForm(
        **{n: given.get(n, "").strip() for n in ComparisonForm.__struct_fields__ if n in given}
    )
    # A link to the form names the baseline only.
    asked = any(name in given for name in ("other", "first", "second"))
    problems = form_problems(form) if asked else {}
    compared = None
    if asked and not problems:
        try:
            compared = _compared(request, form)
        except UsageError as error:
            problems = {"": str(error)}
    return page(
        settings,
        "compare",
        400 if problems else 200,
        form=form,
        problems=problems,
        names=list(reversed(run_names(settings.root))),
        factors=FACTORS,
        parts=_parts(compared) if compared else None,
    )


def form_problems(form: ComparisonForm) -> dict[str, str]:
    """What is wrong, by field."""
    problems: dict[str, str] = {}
    if not form.baseline:
        problems["baseline"] = "choose a run"
    if form.factor not in FACTORS:
        problems["factor"] = f"one of {', '.join(FACTORS)}"
    if not form.other:
        problems |= {name: "a name, or choose another run" for name in ("first", "second")
                  if not getattr(form, name)}  # fmt: skip
    if form.margin and _margin(form) is None:
        problems["margin"] = "a percentage from 0 to 100, such as 2"
    return problems


def _margin(form: ComparisonForm) -> float | None:
    try:
        margin = float(form.margin)
    except ValueError:
        return None
    return margin if 0 <= margin < 100 else None


def _compared(request: Request, form: ComparisonForm) -> ComparisonReport:
    root = context(request).settings.root
    baseline = stored_run(form.baseline, root)
    others = [stored_run(form.other, root)] if form.other else []
    asked = tuple(name for name in (form.first, form.second) if name)
    wanted = CellFilter(
        client=asked if form.factor == "client" else (),
        server=asked if form.factor == "server" else (),
        load=asked if form.factor == "load" else (),
    )
    with fits_together(baseline):
        return compare_stored([baseline], others, wanted, (), _margin(form))


def _parts(compared: ComparisonReport) -> dict[str, object]:
    lists = [(heading, lines) for heading, lines in text_lists(compared) if lines]
    return {
        "head": [line for line in (*head(compared), common_fields(compared)) if line],
        "tables": tables(compared),
        "lists": lists,
        "tally": tally(compared),
    }
