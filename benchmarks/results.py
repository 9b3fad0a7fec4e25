"""Play the suites, keep each run as an archive, and write docs/results.md from the archives.

    python benchmarks/results.py                  play all suites, on a quiet machine (an hour)
    python benchmarks/results.py quick clients    only some
    python benchmarks/results.py --pages          only the runs with the cells of published pages
    python benchmarks/results.py --draw           play nothing, only draw

Started again after it was stopped, it goes on with the run that was not over.

`docs/runs/SUITE.zip` is the run. From it come `docs/pictures/SUITE.png`, the suite's section of
`docs/results.md`, and what README shows of `quick`. The clients play in turns where the suite
allows it: not where a workload ends by itself. If that run lacks cells of the suite's published
page, `docs/runs/SUITE-page.zip` is another, which has them. `docs/data/published.csv` has the
published figures beside today's, `docs/data/results-before.csv` the leads of the runs that stood in
the book before.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from results_page import Head, Lead, leads, published, section

from cachemark.analysis.statistics import Comparison
from cachemark.cli.exit_status import FAILED
from cachemark.report.compare import CellFilter, compare_stored
from cachemark.report.csv_text import csv_text, flat_csv
from cachemark.report.formats import draw_summary, load_report, render
from cachemark.report.rounds import run_answers
from cachemark.runs.storage.archive import export_run, import_run
from cachemark.runs.storage.store import Run, latest_own_run, run_names

DOCS = Path(__file__).parents[1] / "docs"
README = DOCS.parent / "README.md"
PUBLISHED = DOCS / "data" / "published.csv"
BEFORE = DOCS / "data" / "results-before.csv"
_MARK = "<!-- {}, from docs/runs/{}.zip -->\n"
# In the folder of a run whose archive is made.
_KEPT = "kept"
# A terminal's usual width is too narrow for the table; README's lines have room for this.
_COLUMNS = 104


@dataclass(frozen=True)
class Suite:
    """A suite of the book: the options of its run, and what its picture shows.

    `pages` are the options of the runs with the cells of the published page, if it takes others.
    Without the environment variable `pages_need`, if there is one, they are not played. `base` is a
    client whose ratios to `others` the question asks for, and no ranking has.
    """

    options: tuple[str, ...]
    picture: str
    pages: tuple[tuple[str, ...], ...] = ()
    pages_need: str = ""
    base: str = ""
    others: tuple[str, ...] = ()


def _options(name: str, values: str) -> tuple[str, ...]:
    """An option several times, once for each of the values."""
    return tuple(word for value in values.split() for word in (name, value))


# The clients of the published cells; docs/originals.md says where to get those that Debian lacks.
_RUBY_CLIENTS = """
    ruby/dalli ruby/dalli@defaults?values=array ruby/memcache-client
    ruby/memcache-client@defaults?values=array ruby/memcached@defaults
    ruby/memcached@defaults?values=array ruby/memcached_rails
    ruby/memcached_rails@defaults?values=array
"""
_RUBY_STORES = """
    ruby/dalli_store@defaults?values=array ruby/dalli_store@defaults?values=array&local_cache=on
    ruby/mem_cache_store@defaults?values=array
    ruby/mem_cache_store@defaults?values=array&local_cache=on
    ruby/memcached_store@defaults?values=array
    ruby/memcached_store@defaults?values=array&local_cache=on
"""

# One set, as clients of several sets that never meet have no first.
_RUBY_SET = """
    ruby/dalli ruby/memcache-client ruby/memcached ruby/mem_cache_store@defaults?values=array
    ruby/mem_cache_store@defaults?values=array&local_cache=on
    ruby/memcached_store@defaults?values=array
    ruby/memcached_store@defaults?values=array&local_cache=on
"""
_PYTHON_SET = """
    native python/socket python/pymemcache python/pylibmc python/python-memcached pypy/socket
    pypy/pymemcache
"""
# By time and in turns: answers need this, where the page's workloads end after some operations.
_IN_TURNS = ("--quick", "--measure-ms", "250", "--set", "design=rounds", "--blocks", "6")
# Without an A/A test: a page's figures have no answers, and its archive takes less room.
_ONCE = ("--set", "twice=")
# A table for each number of processes, and one of a million operations.
_CONSTCACHE_TABLES = " ".join(
    [f"{kind}-{of}" for kind in ("set", "get") for of in (1, 2, 5, 10, 20, 50, 100)]
    + ["get-1-million"]
)
_CONSTCACHE_CLIENTS = """
    php/memcached php/memcached?compression=on&compression_threshold=100
    php/shared-store?memory=2g&hash_power=16 php/shared-store?memory=2g&hash_power=20
    php/apcu?entries_hint=1048576 native/shm?memory=2g&hash_power=20
"""

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
        ("--quick", "--blocks", "4"),
        "Operations per second of three Java clients",
        # While the JVM is cold, 1024 outstanding operations may take longer than a second.
        (
            (
                *("--quick", "--blocks", "1", "--threads", "128"),
                *("--set", "timing.timeout_ms=5000", *_ONCE),
            ),
        ),
    ),
    "ruby-clients": Suite(
        (
            *("--quick", "--set", "design=rounds", "--blocks", "6"),
            *_options("--workload", "set get multiget store-mixed store-big-read-multi"),
            *_options("--client", _RUBY_SET),
        ),
        "Operations per second of Ruby clients and Rails stores, five cells",
        (
            (
                *("--quick", "--blocks", "1"),
                *_options("--workload", "set set-plain get get-plain multiget missing mixed"),
                *_options("--client", _RUBY_CLIENTS),
            ),
            (
                *("--quick", "--blocks", "1"),
                *_options("--workload", "store-mixed store-set store-get store-big-read-multi"),
                *_options("--client", _RUBY_STORES),
            ),
        ),
        "CACHEMARK_GEM_MEMCACHED",
    ),
    "server-modes": Suite(
        (
            *("--blocks", "3", "--set", "timing.warmup_ms=1000", "--workload", "txn-20000"),
            *("--load", "text-1-threads", "--load", "text-20-threads", "--server", "memcached"),
            *("--server", "embedded:io=blocking", "--server", "embedded:io=events"),
        ),
        "Operations per second by the server's threading, two loads",
        (("--quick",),),
        "QUICKCACHED_HOME",
    ),
    "emcache": Suite(
        (
            *_IN_TURNS,
            *_options("--workload", "get set-noreply"),
            *_options("--client", _PYTHON_SET),
        ),
        "Operations per second of Python and PyPy clients, two workloads",
        (("--quick",),),
    ),
    "inprocess-vs-network": Suite(
        (*_IN_TURNS, *_options("--workload", "set-1 get-1")),
        "Shared memory beside memcached: sets and gets of one process",
        (
            (
                *("--blocks", "1", *_ONCE),
                *_options("--workload", _CONSTCACHE_TABLES),
                *_options("--client", _CONSTCACHE_CLIENTS),
            ),
        ),
        base="php/memcached",
        others=("php/apcu?entries_hint=1048576", "php/shared-store?memory=2g&hash_power=16"),
    ),
}


def archive_of(suite: str) -> Path:
    """Where a suite's run is."""
    return DOCS / "runs" / f"{suite}.zip"


def page_archives_of(suite: str) -> list[Path]:
    """Where the further runs with the cells of a suite's published page are."""
    numbers = range(1, len(SUITES[suite].pages) + 1)
    return [archive_of(f"{suite}-page" + (f"-{of}" if of > 1 else "")) for of in numbers]


def play(suite: str, options: tuple[str, ...], archive: Path, store: Path) -> None:
    """Play a suite, or go on with its stopped run, and keep it as an archive."""
    print(f"{time.strftime('%H:%M')} {suite}", flush=True)
    what = ["--resume"] if run_names(store) else [suite, *options]
    command = [sys.executable, "-m", "cachemark", "run", *what, "--runs", str(store)]
    ended = subprocess.run(command, check=False)
    # With a client that failed there is still something to show.
    if ended.returncode > FAILED:
        sys.exit(ended.returncode)
    run = latest_own_run(store)
    if not any(trial.verdict == "VALID" for trial in load_report(run).trials):
        sys.exit(f"{suite}: no trial is valid, so its archive stays as it was: see {run.folder}")
    if archive == archive_of(suite) and archive.exists():
        keep_leads(suite)
    archive.parent.mkdir(exist_ok=True)
    archive.unlink(missing_ok=True)
    export_run(run, archive, zipfile.ZIP_LZMA)
    (store / _KEPT).touch()


def play_all(suites: list[str], runs: Path, *, only_pages: bool) -> None:
    """Play the runs of some suites; a second call goes on where the first was stopped."""
    stores: list[Path] = []
    for name in suites:
        suite = SUITES[name]
        archives = [archive_of(name), *page_archives_of(name)]
        for archive, options in zip(archives, [suite.options, *suite.pages], strict=True):
            is_page = archive != archive_of(name)
            if only_pages and not is_page:
                continue
            if is_page and suite.pages_need and suite.pages_need not in os.environ:
                print(f"{archive.name} stays as it is: set {suite.pages_need} to play it again")
                continue
            stores.append(runs / "book" / archive.stem)
            if not (stores[-1] / _KEPT).exists():
                play(name, options, archive, stores[-1])
    for store in stores:
        shutil.rmtree(store)


def stored(archive: Path, folder: str) -> Run:
    """The run of an archive, imported into a store of its own in a folder."""
    return import_run(archive, Path(folder) / archive.stem)[0]


def leads_before() -> list[Lead]:
    """The leads of the runs that stood in the book before."""
    if not BEFORE.exists():
        return []
    with BEFORE.open(newline="", encoding="utf-8") as table:
        return [Lead(**row) for row in csv.DictReader(table, strict=True)]


def keep_leads(suite: str) -> None:
    """Keep the leads of the suite's archive, which another run will replace."""
    with tempfile.TemporaryDirectory() as folder:
        run = stored(archive_of(suite), folder)
        report = load_report(run)
        answers = run_answers(run.header.experiment, run.outcomes())
        of_run = [lead for lead, _ in leads(suite, report, answers)]
    kept = [lead for lead in leads_before() if lead.suite != suite]
    BEFORE.write_text(flat_csv([*kept, *of_run]), encoding="utf-8")


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


def ratios(run: Run, base: str, others: Sequence[str]) -> list[Comparison]:
    """The rates of clients relative to that of a base, in each cell that they share."""
    rate = ("rate",)
    compared = [
        compare_stored([run], [], CellFilter(), rate, None, cells=(base, of)) for of in others
    ]
    return [of for report in compared for row in report.rows for of in row.comparisons]


def draw(suites: list[str]) -> dict[Path, bytes]:
    """Everything that is made of the archives, by path: pictures, pages and the table."""
    drawn: dict[Path, bytes] = {}
    sections: list[str] = []
    before = leads_before()
    beside: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        for suite in suites:
            run = stored(archive_of(suite), folder)
            report = load_report(run)
            drawn[DOCS / "pictures" / f"{suite}.png"] = draw_summary(run)
            answers = run_answers(run.header.experiment, run.outcomes())
            of = SUITES[suite]
            head = Head(suite, " ".join(["cachemark run", suite, *of.options]), of.picture)
            sections.append(section(head, report, answers, before, ratios(run, of.base, of.others)))
            pages = [of for of in page_archives_of(suite) if of.exists()]
            of_pages = [load_report(stored(of, folder)) for of in pages]
            beside += published(suite, [*of_pages, report])
            if suite == "quick":
                text = README.read_text(encoding="utf-8")
                drawn[README] = readme(text, run).encode()
    page = DOCS / "results.md"
    head, _, _ = page.read_text(encoding="utf-8").partition("\n## ")
    drawn[page] = "\n".join([head, *sections]).encode()
    columns = ["suite", "date", "table", "cell", "figure", "value"]
    drawn[PUBLISHED] = csv_text([columns, *beside]).encode()
    return drawn


def main(options: argparse.Namespace) -> None:
    """Play what was asked for, then draw the page of all archives again."""
    if not options.draw:
        play_all(options.suites, options.runs, only_pages=options.pages)
    for path, content in draw([suite for suite in SUITES if archive_of(suite).exists()]).items():
        path.write_bytes(content)
        print(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("suites", nargs="*", default=list(SUITES), help=", ".join(SUITES))
    parser.add_argument("--pages", action="store_true", help="only published pages' runs")
    parser.add_argument("--draw", action="store_true", help="play nothing")
    parser.add_argument("--runs", type=Path, default=Path("results"), help="folder of the runs")
    given = parser.parse_args()
    if unknown := [name for name in given.suites if name not in SUITES]:
        parser.error(f"the book has no suite {unknown[0]}; it has {', '.join(SUITES)}")
    main(given)
