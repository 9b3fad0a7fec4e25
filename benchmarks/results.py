"""Play the suites, keep each run as an archive, and write docs/results.md from the archives.

    python benchmarks/results.py                  play all suites, on a quiet machine (40 minutes)
    python benchmarks/results.py quick clients    only some
    python benchmarks/results.py --missing        only those without an archive
    python benchmarks/results.py --draw           play nothing, only draw

`docs/runs/SUITE.zip` is the run. From it come `docs/pictures/SUITE.png`, the suite's section of
`docs/results.md`, and what README shows of `quick`. The clients play in turns where the suite
allows it: not where a workload ends by itself.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

from cachemark.analysis.rounds.answers import Answers, GroupAnswer, Ranking
from cachemark.analysis.rounds.texts import plus_minus_percent, ratio_words
from cachemark.cli.exit_status import FAILED
from cachemark.report.formats import draw_summary, load_report, render
from cachemark.report.markdown import one_line
from cachemark.report.model import Report
from cachemark.report.rounds import run_answers
from cachemark.runs.storage.archive import export_run, import_run
from cachemark.runs.storage.store import Run, latest_own_run

DOCS = Path(__file__).parents[1] / "docs"
README = DOCS.parent / "README.md"
_MARK = "<!-- {}, from docs/runs/{}.zip -->\n"
# A terminal's usual width is too narrow for the table; README's lines have room for this.
_COLUMNS = 104
_PROSE_COLUMNS = 119
# An interval that is wider than this, in percent either way, is left out.
_TELLS_NOTHING = 100


@dataclass(frozen=True)
class Suite:
    """A suite of the book: the options of its run, and what its picture shows."""

    options: tuple[str, ...]
    picture: str


SUITES = {
    "quick": Suite(
        (),
        "Operations per second of five Python clients and the native client, against two servers",
    ),
    "clients": Suite(
        ("--quick",), "Operations per second of client libraries with one caller, in every language"
    ),
    # Not in turns: with 256 callers, slices would tell too high a rate.
    "java-clients": Suite(
        ("--quick", "--blocks", "6"), "Operations per second of three Java clients"
    ),
    "ruby-clients": Suite(
        (
            *("--quick", "--set", "design=rounds", "--blocks", "6"),
            *("--workload", "set", "--workload", "get"),
            *("--workload", "multiget", "--workload", "store-mixed"),
            *("--workload", "store-big-read-multi"),
        ),
        "Operations per second of Ruby clients and Rails stores, five cells",
    ),
    "server-modes": Suite(
        (
            *("--blocks", "3", "--set", "timing.warmup_ms=1000", "--workload", "txn-20000"),
            *("--load", "text-1-threads", "--load", "text-20-threads", "--server", "memcached"),
            *("--server", "embedded:io=blocking", "--server", "embedded:io=events"),
        ),
        "Operations per second by the server's threading, two loads",
    ),
    "emcache": Suite(
        ("--quick",), "Operations per second of Python and PyPy clients, three workloads"
    ),
    "inprocess-vs-network": Suite(
        ("--quick", "--workload", "set-1", "--workload", "get-1"),
        "Shared memory beside memcached: sets and gets of one process",
    ),
}


def archive_of(suite: str) -> Path:
    """Where a suite's run is."""
    return DOCS / "runs" / f"{suite}.zip"


def play(suite: str, runs: Path) -> None:
    """Play a suite and keep its run as an archive, in place of the one before."""
    command = [sys.executable, "-m", "cachemark", "run", suite, *SUITES[suite].options]
    ended = subprocess.run([*command, "--runs", str(runs)], check=False)
    # With a client that failed there is still something to show.
    if ended.returncode > FAILED:
        sys.exit(ended.returncode)
    run = latest_own_run(runs)
    if not any(trial.verdict == "VALID" for trial in load_report(run).trials):
        sys.exit(f"{suite}: no trial is valid, so its archive stays as it was: see {run.folder}")
    archive = archive_of(suite)
    archive.parent.mkdir(exist_ok=True)
    archive.unlink(missing_ok=True)
    export_run(run, archive)


def stored(suite: str, store: Path) -> Run:
    """A suite's run, imported from its archive into a store."""
    return import_run(archive_of(suite), store)[0]


def section(suite: str, report: Report, answers: Answers) -> str:
    """A suite's part of the page: the command, the machine, the answers, the picture."""
    header = report.header
    command = " ".join(["cachemark run", suite, *SUITES[suite].options])
    # The processor, the number of CPUs, and whether they are virtual; the archive has the rest.
    machine = ", ".join(report.environment[0].split(", ")[:3])
    played = f"{header.created_at[:10]}, {report.valid_trials} trials valid: {machine}."
    lines = [
        *(f"## {suite}", "", _wrapped(header.experiment.question), ""),
        *("```sh", command, "```", ""),
        _wrapped(f"Played on {played}"),
        "",
        *answers_of(suite, report, answers),
        "",
        f"![{SUITES[suite].picture}](pictures/{suite}.png)",
        "",
    ]
    return "\n".join(lines)


def answers_of(suite: str, report: Report, answers: Answers) -> list[str]:
    """The lines of a suite's answers: a table of its rankings, and the other sentences.

    README has the answers of `quick`.
    """
    if suite == "quick":
        return ["[README](../README.md#what-make-bench-prints) has the answers of this run."]
    both = report.header.experiment.rank == "servers"
    ranked = [of for of in answers.groups if both or of.question.kind == "clients"]
    rows = [_row(of, ranking) for of in ranked if (ranking := of.ranking(of.primary))]
    in_table = tuple(f"{_place(of)}: " for of in ranked)
    rest = [_wrapped(of, "- ") for of in report.answers if not of.startswith(in_table)]
    head = [
        "| work | first | second | ratio | answer | own error |",
        "|:--|:--|:--|:--|:--|--:|",
    ]
    return [*head, *rows, *([""] if rest else []), *rest]


def _place(of: GroupAnswer) -> str:
    return f"{of.question.workload}, {of.question.load}, {of.question.common}"


def _row(of: GroupAnswer, ranking: Ranking) -> str:
    """A table row: the lead of a ranking, and the instrument's own error by the A/A test."""
    own = f"{100 * ranking.bound - 100:.1f} %" if ranking.bound > 1 else "–"
    lead = ranking.lead
    if lead is None or lead.ratio is None:
        cells = ["–", "–", "–", "no first"]
    else:
        answer = "first" if lead.answer in ("better", "worse") else lead.answer
        names = [f"`{of.question.name(cell)}`" for cell in (lead.first, lead.second)]
        wide = answer == "open" and (plus_minus_percent(lead.ratio) or 0) > _TELLS_NOTHING
        ratio = f"{lead.ratio.value:.2f}" if wide else ratio_words(lead.ratio)
        cells = [*names, ratio, answer]
    return f"| {' | '.join([_place(of), *cells, own])} |"


def _wrapped(text: str, bullet: str = "") -> str:
    return textwrap.fill(
        one_line(text),
        _PROSE_COLUMNS,
        initial_indent=bullet,
        subsequent_indent=" " * len(bullet),
        break_long_words=False,
        break_on_hyphens=False,
    )


def readme(text: str, run: Run) -> str:
    """README with the block behind its mark replaced by what `cachemark run quick` printed."""
    mark = _MARK.format("What it prints", "quick")
    before, found, after = text.partition(mark)
    if not found:
        sys.exit(f"README.md: no line {mark.strip()!r}")
    _, end, rest = after.removeprefix("```\n").partition("\n```\n")
    if not end:
        sys.exit("README.md: the block behind the mark has no end")
    # The reader does not have the run that the last lines compare.
    answers, _, _ = render("answers", run, _COLUMNS).partition("\nCompare two of them:\n")
    return f"{before}{mark}```\n{answers.strip()}\n```\n{rest}"


def draw(suites: list[str]) -> dict[Path, bytes]:
    """Everything that is made of the archives, by path: pictures, the page and README."""
    drawn: dict[Path, bytes] = {}
    sections: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for suite in suites:
            run = stored(suite, Path(folder) / suite)
            drawn[DOCS / "pictures" / f"{suite}.png"] = draw_summary(run)
            answers = run_answers(run.header.experiment, run.outcomes())
            sections.append(section(suite, load_report(run), answers))
            if suite == "quick":
                text = README.read_text(encoding="utf-8")
                drawn[README] = readme(text, run).encode()
    page = DOCS / "results.md"
    head, _, _ = page.read_text(encoding="utf-8").partition("\n## ")
    drawn[page] = "\n".join([head, *sections]).encode()
    return drawn


def main(options: argparse.Namespace) -> None:
    """Play what was asked for, then draw the page of all archives again."""
    if not options.draw:
        for suite in options.suites:
            if not (options.missing and archive_of(suite).exists()):
                print(f"{time.strftime('%H:%M')} {suite}", flush=True)
                play(suite, options.runs)
    for path, content in draw([suite for suite in SUITES if archive_of(suite).exists()]).items():
        path.write_bytes(content)
        print(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("suites", nargs="*", default=list(SUITES), help=", ".join(SUITES))
    parser.add_argument("--missing", action="store_true", help="only suites without an archive")
    parser.add_argument("--draw", action="store_true", help="play nothing")
    parser.add_argument("--runs", type=Path, default=Path("results"), help="folder of the runs")
    given = parser.parse_args()
    if unknown := [name for name in given.suites if name not in SUITES]:
        parser.error(f"the book has no suite {unknown[0]}; it has {', '.join(SUITES)}")
    main(given)
