"""The comparison of two runs, of a cell of each, or of two cells of one run."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from cachemark.model.errors import UsageError
from cachemark.model.experiment import Experiment
from cachemark.model.experiment_settings import experiment_text
from cachemark.report.compare import CellFilter, ComparisonReport
from cachemark.report.compare.played_again import library_versions, played_again
from cachemark.report.compare.stored import compare_stored
from cachemark.report.compare.tables import document
from cachemark.report.formats import fits_together
from cachemark.report.history.run_list import cell_names, list_runs
from cachemark.runs.parties import known_clients
from cachemark.web.context import context
from cachemark.web.layout import page
from cachemark.web.stored import stored_run

# The most titles of cells to offer; a run of 45 clients has hundreds.
_MOST_NAMES = 200


class ComparisonForm(msgspec.Struct, frozen=True, kw_only=True):
    """The typed form. Without `other`, or if that is the same run, it compares cells of one run.

    `first` is a cell of the baseline, `second` a cell of the other run: by its names or its title.
    """

    baseline: str = ""
    first: str = ""
    other: str = ""
    second: str = ""
    margin: str = ""

    @property
    def within(self) -> bool:
        """Whether both sides are cells of one run."""
        return not self.other or bool(self.other == self.baseline and (self.first or self.second))

    @property
    def cells(self) -> tuple[str, str] | None:
        """The cells of both sides. One name holds for both; None without a name: all cells."""
        both = self.first or self.second, self.second or self.first
        return both if all(both) else None


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
    with context(request).index.open() as index:
        names = {
            field: cell_names(index, run)[:_MOST_NAMES]
            for field, run in (("first", form.baseline), ("second", form.other or form.baseline))
        }
        runs = [listed.run for listed in list_runs(index) if listed.run.kind == "grid"]
    compared, again = None, None
    if asked and not problems:
        try:
            compared = _compared(request, form)
            again = _again(request, form, compared)
        except UsageError as error:
            problems = {"": str(error)}
    return page(
        settings,
        "compare",
        400 if problems else 200,
        form=form,
        problems=problems,
        runs=runs,
        names=names,
        compared=document(compared) if compared else None,
        unanswered=compared and any(row.is_unanswered for row in compared.rows),
        again=experiment_text(again) if again else "",
    )


def form_problems(form: ComparisonForm) -> dict[str, str]:
    """Errors by field."""
    problems: dict[str, str] = {}
    if not form.baseline:
        problems["baseline"] = "choose a run"
    if form.within:
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
    others = [] if form.within else [stored_run(form.other, root)]
    with fits_together(baseline):
        return compare_stored([baseline], others, CellFilter(), (), _margin(form), cells=form.cells)


def _again(request: Request, form: ComparisonForm, compared: ComparisonReport) -> Experiment | None:
    """The run that would answer an open comparison; None if another run cannot.

    A comparison within a run has already played its cells in turns.
    """
    if form.within:
        return None
    root = context(request).settings.root
    runs = stored_run(form.baseline, root), stored_run(form.other, root)
    versions = [library_versions(run.outcomes()) for run in runs]
    known = known_clients()
    return played_again(
        compared,
        (runs[0].header.experiment, runs[1].header.experiment),
        (versions[0], versions[1]),
        lambda client: client in known and bool(known[client].install_version),
    )
