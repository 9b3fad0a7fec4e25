"""The last screen of a run: one small ranking for each question, and the answers in words."""

import shlex

from rich.markup import escape

from cachemark.analysis.number_format import count_of
from cachemark.report.absences import absence_text
from cachemark.report.console import print_words, text_console, text_of
from cachemark.report.default_settings import default_lines
from cachemark.report.document import Table
from cachemark.report.model import RatesSection, Report, ranked_figure
from cachemark.report.tables import group_title, ranking_table
from cachemark.report.terminal import print_table, rich_table
from cachemark.report.trials import replay_lines, too_few

# The columns that answer the question; the report has the others.
_SHOWN = frozenset(
    {"name", "rate", "ratio", "p99", "hit-ratio", "client-cpu", "refused", "evictions"}
)
# More groups than a screen has room for.
_MAX_GROUPS = 6
_MAX_REASONS = 2


def render(report: Report, width: int | None, run: str = "") -> str:
    """The answers as text of at most `width` columns; commands name the run by `run` or its id."""
    console = text_console(width)
    print_words(console, report.header.title, wrapped=True)
    for group in report.groups[:_MAX_GROUPS]:
        console.print()
        console.print(escape(group_title(group)))
        console.print(rich_table(_shown(ranking_table(group)), console.width))
    for section in report.sections:
        if isinstance(section, RatesSection):
            console.print()
            print_table(console, section.columns, section.rows)
    left = len(report.groups) - _MAX_GROUPS
    if left > 0:
        command = shlex.join(["cachemark", "report", run or report.header.id])
        print_words(console, f"… and {left} more. All groups:\n  {command}")
    if report.answers:
        console.print()
    for line in report.answers:
        print_words(console, " ".join(line.split()), wrapped=True)
    totals = [row.summary.total for group in report.groups for row in group.rows]
    for line in [
        *too_few(totals, (99.0,)),
        *report.unverified,
        *default_lines(report.sections),
        *(f"Not played: {absence_text(absence)}" for absence in report.absences),
    ]:
        print_words(console, line, wrapped=True)
    if command := compare_command(report, run):
        # On a line of its own, so that a narrow terminal does not break the command.
        print_words(console, f"Compare two of them:\n  {command}")
    if command := longer_command(report, run):
        print_words(console, f"Play on, as questions are open:\n  {command}")
    replays = replay_lines(report.header.experiment, report.trials)
    for line in [*replays, *_left_out(report), *_remedies(report)]:
        print_words(console, line, wrapped=True)
    return text_of(console)


def compare_command(report: Report, run: str = "") -> str:
    """The command that compares the first two of the first ranking; empty if there are none."""
    for group in report.groups:
        named = [
            row.name
            for row in group.rows
            if not row.yardstick and ranked_figure(row.summary, group.metric) is not None
        ]
        if len(named) > 1:
            pair = [word for name in named[:2] for word in (f"--{group.heading}", name)]
            return shlex.join(["cachemark", "compare", run or report.header.id, *pair])
    return ""


def longer_command(report: Report, run: str = "") -> str:
    """The command that lets a run with open questions go on for longer; empty if there are none."""
    rounds, header = report.rounds, report.header
    is_open = bool(report.left) if rounds is None else not rounds.settled
    if not is_open or header.hosts:
        return ""
    limit_s, blocks = header.experiment.rounds.max_s, header.experiment.blocks
    words = ["cachemark", "run", "--resume", run or header.id]
    if rounds and limit_s and rounds.sittings < blocks:
        words += ["--max", f"{2 * limit_s}s"]
    elif report.left != "rest":
        if report.absences:
            return ""  # cells that cannot be played are numbered behind the blocks
        words += ["--blocks", f"{2 * blocks}"]
    return shlex.join(words)


def _shown(table: Table) -> Table:
    """The columns of a short table; errors only if there are any."""
    failed = {
        row[at] for at, of in enumerate(table.columns) if of.id == "errors" for row in table.rows
    }
    shown = _SHOWN | ({"errors"} if failed - {"0", "–"} else set())
    return table.only([at for at, column in enumerate(table.columns) if column.id in shown])


def _left_out(report: Report) -> list[str]:
    """Why some trials do not count: the first reasons, and how many more there are."""
    lines = [f"Does not count: {reason}" for reason in report.rejected[:_MAX_REASONS]]
    if more := len(report.rejected) - len(lines):
        reasons = count_of(more, "more reason")
        lines.append(f"… and {reasons}: see --details, or `cachemark report`.")
    return lines


def _remedies(report: Report) -> list[str]:
    """Remedies if trials were played and no trial is valid."""
    played = [trial.verdict for trial in report.trials if trial.verdict != "unsupported"]
    if not played or "VALID" in played:
        return []
    line = f"{report.valid_trials} trials are valid."
    if "OVERLOAD" in played:
        line += " A lower --rate does not overload the server."
    if "INVALID" in played and report.header.experiment.noise != "note":
        line += (
            " Where noise is the reason and the machine cannot be quieter: --set noise=note keeps "
            "the trials and withholds only what noise can have moved; longer windows (--duration) "
            "bear more of it."
        )
    return [line]
