"""`cachemark compare`: runs, parts of one run, or two builds that are played in turns."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from cyclopts import Parameter

from cachemark.analysis.statistics import FigureName
from cachemark.analysis.stored_runs import MIN_RUNS
from cachemark.cli import completers
from cachemark.cli.compare_builds import Builds, compare_builds
from cachemark.cli.document_forms import write_document
from cachemark.cli.exit_status import FAILED, INCONCLUSIVE, OK
from cachemark.cli.output import write_text
from cachemark.model.errors import UsageError
from cachemark.report.compare import (
    RENDERERS,
    CellFilter,
    ComparisonReport,
    Gate,
    GateAnswer,
    check_gate,
    compare_stored,
    gate_answer,
)
from cachemark.report.formats import fits_together
from cachemark.runs.storage.store import Run, latest_run, open_run

CompareForm = Literal["table", "markdown", "csv", "json", "html", "junit"]
_STATUS: dict[GateAnswer, int] = {"passed": OK, "failed": FAILED, "inconclusive": INCONCLUSIVE}
_ONLY = "only these (may be repeated); within one run, the first is the baseline of the others"
_RUNS = (
    "baseline and other run; or one run (default: the latest) with --client A --client B; or "
    "several baseline runs --with several others"
)
_WITH = Parameter(
    name="--with",
    consume_multiple=True,
    completer=completers.runs,
    help="runs to compare with the baseline runs; an answer needs "
    f"{MIN_RUNS} or more on each side, played in turns",
)


_CELL = (
    "twice: a cell of the baseline, then one of the other run (or of the same): its title, or some "
    "of its names, such as its client; the others have to be the same on both sides"
)


@dataclass(frozen=True)
class Cells:
    """The cells to compare."""

    client: Annotated[
        tuple[str, ...], Parameter(completer=completers.clients_to_compare, help=_ONLY)
    ] = ()
    server: Annotated[
        tuple[str, ...], Parameter(completer=completers.in_run("servers"), help=_ONLY)
    ] = ()
    load: Annotated[
        tuple[str, ...], Parameter(completer=completers.in_run("loads"), help=_ONLY)
    ] = ()
    workload: Annotated[
        tuple[str, ...], Parameter(completer=completers.in_run("workloads"), help="only these")
    ] = ()
    cell: Annotated[tuple[str, ...], Parameter(help=_CELL)] = ()


@dataclass(frozen=True)
class GateOptions:
    """The options that decide the exit status."""

    fail_on_regression: Annotated[
        bool, Parameter(help="exit with status 1 if a gated figure is worse or missing")
    ] = False
    fail_on_inconclusive: Annotated[
        bool,
        Parameter(
            help="--fail-on-regression, and exit with status 3 if a gated figure is not settled"
        ),
    ] = False
    gate: Annotated[
        tuple[FigureName, ...],
        Parameter(help="figures that decide (may be repeated), each tested by itself; "
                  "default: all compared figures (--play: rate, client-cpu and server-cpu)"),
    ] = ()  # fmt: skip

    @property
    def gate_value(self) -> Gate:
        """The gate, as comparisons hold it."""
        return Gate(figures=self.gate, fail_on_inconclusive=self.fail_on_inconclusive)

    @property
    def active(self) -> bool:
        """Whether a comparison of stored runs has a gate."""
        return self.fail_on_regression or self.fail_on_inconclusive or bool(self.gate)


@dataclass(frozen=True)
class Forms:
    """The files of the comparison, and its format."""

    form: Annotated[CompareForm, Parameter(name="--format")] = "table"
    out: Annotated[Path | None, Parameter(help="write to this file")] = None
    junit: Annotated[Path | None, Parameter(help="also write JUnit XML to this file")] = None
    markdown: Annotated[Path | None, Parameter(help="also write Markdown to this file")] = None


def compare(
    *runs: Annotated[
        str,
        Parameter(completer=completers.runs, help=_RUNS),
    ],
    others: Annotated[tuple[str, ...], _WITH] = (),
    cells: Annotated[Cells | None, Parameter(name="*")] = None,
    figure: Annotated[
        tuple[FigureName, ...],
        Parameter(help="figures to compare (may be repeated), instead of rate and "
                  "p99 (open loop: p50 and p99)"),
    ] = (),
    margin: Annotated[
        float | None,
        Parameter(help="smallest relevant difference in percent; default: the first run's margin"),
    ] = None,
    gating: Annotated[GateOptions | None, Parameter(name="*")] = None,
    play: Annotated[
        bool,
        Parameter(help="play two clients or servers now, in turns: first the base, "
                  "then the head; exit with status 1 if the head is worse"),
    ] = False,
    max: Annotated[str | None, Parameter(help="with --play: longest time, such as 10m")] = None,
    forms: Annotated[Forms | None, Parameter(name="*")] = None,
    folder: Annotated[Path, Parameter(name="--runs", help="folder of all runs")] = Path("results"),
) -> int:  # fmt: skip
    """Compare runs, or two clients, servers or loads of one run: ratios with their intervals.

    *Better* and *worse* need p < 0.05 after Holm's correction over the cells of the figure, and an
    estimate beyond the margin and beyond the instrument's own error (the A/A test). *Equal* needs
    the whole interval within the margin. *Open* is everything else. A margin of 5 % reaches from
    1/1.05 to 1.05. Runs in rounds that looked at their data more than once have the stricter level
    of their looks instead: 98.4 % intervals, and p < 0.0158.

    The cells of one run are paired by block. Between runs, each run is one value, because its
    trials share its state: one run on each side gives a ratio and no answer. Several runs on each
    side have an answer if they were played in turns: then neighbours in time are pairs.
    """
    if margin is not None and not 0 <= margin < 100:
        raise UsageError(f"--margin {margin:g}: not a percentage", "such as --margin 2")
    wanted, gating, forms = cells or Cells(), gating or GateOptions(), forms or Forms()
    if play:
        _refuse_with_play(runs, wanted, figure)
        return _play(Builds(
            client=wanted.client, server=wanted.server, margin=margin, max=max, out=folder
        ), gating, forms)  # fmt: skip
    first = [open_run(name, folder) for name in runs] or [latest_run(folder)]
    first, second = _two_sides(first, [open_run(name, folder) for name in others])
    if gating.active:
        _refuse_few(first, second)
    names = tuple(dict.fromkeys([*figure, *gating.gate]))
    both = _two_cells(wanted)
    with fits_together((second or first)[-1]):
        compared = compare_stored(first, second, _filter(wanted), names, margin, cells=both)
    if not gating.active:
        return _write(compared, forms)
    return _end(msgspec.structs.replace(compared, gate=gating.gate_value), gating, forms)


def _play(builds: Builds, gating: GateOptions, forms: Forms) -> int:
    compared, text = compare_builds(builds, gating.gate_value)
    return _end(compared, gating, forms, text)


def _end(compared: ComparisonReport, gating: GateOptions, forms: Forms, text: str = "") -> int:
    """Write a comparison with a gate; the exit status."""
    check_gate(compared, gating.gate_value)
    _write(compared, forms, text)
    return _STATUS[gate_answer(compared)]


def _write(compared: ComparisonReport, forms: Forms, text: str = "") -> int:
    """Write the comparison to the named files; `text` replaces the table.

    Returns the exit status, which is OK without a gate.
    """
    if text and forms.form == "table":
        write_text(text, forms.out)
    else:
        write_document(compared, RENDERERS, forms.form, forms.out)
    for form, path in (("junit", forms.junit), ("markdown", forms.markdown)):
        if path is not None:
            write_text(RENDERERS[form](compared, None), path)
    return OK


def _two_sides(found: list[Run], others: list[Run]) -> tuple[list[Run], list[Run]]:
    """The baseline runs and the others: of two runs without `--with`, one on each side."""
    return (found[:1], found[1:]) if len(found) == 2 and not others else (found, others)


def _refuse_few(found: list[Run], others: list[Run]) -> None:
    if others and min(len(found), len(others)) < MIN_RUNS:
        raise UsageError(
            f"a gate: fewer than {MIN_RUNS} runs on a side show no regression",
            "compare two clients or servers of one run, or give more runs (--with)",
        )


def _refuse_with_play(runs: tuple[str, ...], cells: Cells, figures: tuple[str, ...]) -> None:
    if runs or cells.load or cells.workload or cells.cell:
        raise UsageError(
            "--play takes no run, --load, --workload or --cell",
            "leave them out: it plays a run of its own",
        )
    if figures:
        raise UsageError(
            "--play compares every figure", "leave --figure out; --gate names those that decide"
        )


def _two_cells(cells: Cells) -> tuple[str, str] | None:
    """The cells of --cell; None without it. Raises UsageError."""
    if not cells.cell:
        return None
    if cells.client or cells.server or cells.load or cells.workload:
        raise UsageError(
            "--cell names the cells already", "leave out --client, --server, --load and --workload"
        )
    if len(cells.cell) != 2:
        raise UsageError(
            f"--cell: {len(cells.cell)} given, not two",
            "such as --cell go/gomemcache --cell python/pymemcache",
        )
    return cells.cell[0], cells.cell[1]


def _filter(cells: Cells) -> CellFilter:
    return CellFilter(
        client=cells.client, server=cells.server, workload=cells.workload, load=cells.load
    )
