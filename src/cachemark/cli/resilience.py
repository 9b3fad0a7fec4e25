"""`cachemark resilience`: what clients do when their server misbehaves."""

import os
import shlex
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.console import Console

from cachemark.analysis.resilience.cell import PROFILES, CellOutcome, ResiliencePlan
from cachemark.cli import completers
from cachemark.cli.document_forms import DocumentForms
from cachemark.cli.exit_status import FAILED, OK
from cachemark.cli.output import console, print_sentences
from cachemark.endpoints.clients import Client, ClientSpec, matching_clients, parse_client, registry
from cachemark.host import process
from cachemark.host.atomic_file import made_folder, replace_file
from cachemark.host.facts import facts
from cachemark.model.errors import UsageError
from cachemark.model.faults import chosen_faults
from cachemark.model.run_header import own_name
from cachemark.report.console import print_words
from cachemark.report.resilience.export import RENDERERS, ResilienceReport, exports
from cachemark.report.resilience.html import INDEX, about_run, pages
from cachemark.report.resilience.matrix import reasons, toned
from cachemark.report.resilience.plan import plan_text
from cachemark.report.terminal import print_toned
from cachemark.runs.resilience.side_by_side import play_rest
from cachemark.runs.resilience.stored import (
    ResilienceRun,
    check_plan,
    create_resilience_run,
    open_resilience_run,
)

# The libraries that most programs of their language use.
_BEST_KNOWN = (
    "native",
    "c/libmemcached",
    "go/gomemcache",
    "java/spymemcached",
    "node/memjs",
    "php/memcached",
    "python/pymemcache",
    "ruby/dalli",
)
_QUICK_SITTINGS, _SITTINGS = 1, 3
_JOBS_OF_A_CPU = 8
_RESUMED = "leave the other options out, except --jobs and --dry-run"


@dataclass(frozen=True)
class ResilienceStorage:
    """Where the run is stored, what it is called, and whether to continue a stopped one."""

    runs: Annotated[Path, Parameter(help="folder of all runs")] = Path("results")
    name: Annotated[str, Parameter(help="what you call the run: the list of runs shows it")] = ""
    resume: Annotated[
        str | None,
        Parameter(help="continue a stopped run (its id, or `latest`), or print its report again"),
    ] = None


@dataclass(frozen=True)
class Playing:
    """Options of playing."""

    jobs: Annotated[
        int,
        Parameter(
            help="number of cells to play side by side; one that this may have disturbed is played "
            "again alone"
        ),
    ] = 1
    dry_run: Annotated[
        bool, Parameter(help="only print what would be played, and how long it takes")
    ] = False


def resilience(
    *clients: Annotated[
        str,
        Parameter(
            completer=completers.clients,
            help="such as go/gomemcache or ruby/*; default: all that are set up",
        ),
    ],
    client: completers.ClientOption = (),
    faults: Annotated[
        tuple[str, ...],
        completers.repeated(completers.faults, "only these faults", name=("--fault", "--faults")),
    ] = (),
    lasting: Annotated[str, Parameter(name="--for", help="how long a fault lasts: 30s")] = "",
    profile: Annotated[
        tuple[Literal["common", "defaults", "tuned"], ...],
        Parameter(
            help="the settings that all clients share, the library's own, or the ones that its "
            "documents recommend (default: all)"
        ),
    ] = (),
    quick: Annotated[
        bool, Parameter(help="only the quick faults and the best-known clients, once")
    ] = False,
    sittings: Annotated[
        int | None, Parameter(help="number of times to play each cell; default: 3, with --quick 1")
    ] = None,
    playing: Annotated[Playing | None, Parameter(name="*")] = None,
    storage: Annotated[ResilienceStorage | None, Parameter(name="*")] = None,
    forms: Annotated[DocumentForms | None, Parameter(name="*")] = None,
) -> int:
    """Find out what clients do when their server freezes, dies or answers wrongly.

    Each cell is one fault on one client: four callers read and write while the fault begins and
    ends, and each of their calls is judged. This needs memcached. The exit status is 1 if a client
    is unsafe or if a cell could not be judged.
    """
    storage, playing = storage or ResilienceStorage(), playing or Playing()
    forms = forms or DocumentForms()
    _check_jobs(playing.jobs)
    known = registry(process.binary_path())
    if storage.resume is not None:
        typed = (clients, client, faults, lasting, profile, quick, sittings is not None)
        return _play_and_show(_stopped(storage, typed), known, playing, forms)
    plan = ResiliencePlan(
        clients=_clients((*clients, *client), known, quick=quick),
        profiles=list(dict.fromkeys(profile or PROFILES)),
        faults=[fault.name for fault in chosen_faults(faults, quick=quick, lasting=lasting)],
        sittings=(_QUICK_SITTINGS if quick else _SITTINGS) if sittings is None else sittings,
    )
    return _play_plan(plan, storage, known, playing, forms)


def _stopped(storage: ResilienceStorage, typed: tuple[object, ...]) -> ResilienceRun:
    """The run to continue. Raises UsageError, also if an option of a new run was given."""
    if storage.name or any(typed):
        raise UsageError("--resume plays with the options of the run's start", _RESUMED)
    name = "" if storage.resume in (None, "latest") else storage.resume
    return open_resilience_run(name, storage.runs)


def _play_plan(
    plan: ResiliencePlan,
    storage: ResilienceStorage,
    known: dict[str, Client],
    playing: Playing,
    forms: DocumentForms,
) -> int:
    name = own_name(storage.name)
    check_plan(plan, "--sittings")
    if playing.dry_run:
        print_sentences(plan_text(plan.cells(), playing.jobs))
        return OK
    run = create_resilience_run(storage.runs, plan, facts(), name)
    return _play_and_show(run, known, playing, forms)


def _play_and_show(
    run: ResilienceRun, known: dict[str, Client], playing: Playing, forms: DocumentForms
) -> int:
    out = console(stderr=not forms.on_screen)
    outcomes = run.outcomes()
    if playing.dry_run:
        print_sentences(plan_text(run.left(outcomes), playing.jobs))
        return OK
    spec_of = partial(parse_client, known=known)
    try:
        with closing(play_rest(run, spec_of, outcomes, playing.jobs)) as played:
            for outcome in played:
                _print_progress(out, outcome)
                outcomes.append(outcome)
    except KeyboardInterrupt:
        text = (
            f"stopped; go on with:\n  cachemark resilience --resume {shlex.quote(str(run.folder))}"
        )
        print_words(out, text)
        raise
    report = ResilienceReport(
        outcomes=outcomes, faults=run.header.plan.faults, about=about_run(run.header, outcomes)
    )
    page = _write_pages(run, report)
    forms.write(report, RENDERERS)
    print_words(out, f"outcomes {run.folder / 'cells.jsonl'} · report {page}")
    bad = any(one.failed or one.verdict == "unsafe" for one in outcomes)
    return FAILED if bad else OK


def _write_pages(run: ResilienceRun, report: ResilienceReport) -> Path:
    """Write the pages and exports of a run; returns the path of the first page."""
    faults = chosen_faults(run.header.plan.faults, quick=False)
    folder = run.folder / "report"
    files = {**pages(report.rows, faults, report.about), **exports(report)}
    try:
        with made_folder(folder):
            for name, text in files.items():
                replace_file(folder / name, text)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be written: {error}") from error
    return folder / INDEX


def _print_progress(out: Console, outcome: CellOutcome) -> None:
    name = outcome.name
    reason = outcome.unsupported or outcome.not_applicable
    word = outcome.verdict or ("failed" if outcome.failed else "not played")
    why = reason or "; ".join(reasons([outcome]))
    text = f"{name.client}  {name.profile}  {name.fault}  {name.sitting}"
    print_toned(out, toned(word, word), f"{text}: {why}" if why else text)


def _check_jobs(jobs: int) -> None:
    most = _JOBS_OF_A_CPU * (os.cpu_count() or 1)
    if not 1 <= jobs <= most:
        raise UsageError(
            f"--jobs {jobs}: 1 to {most} on this machine",
            f"each CPU can play {_JOBS_OF_A_CPU} cells side by side",
        )


def _clients(typed: Sequence[str], known: dict[str, Client], *, quick: bool) -> list[str]:
    """The clients that were typed, or all that can be started here. Raises UsageError."""
    if not typed:
        usual = _BEST_KNOWN if quick else tuple(known)
        found = [(text, known[text]) for text in usual if text in known]
        chosen = [text for text, of in found if not of.missing() and not of.in_process]
        if not chosen:
            raise UsageError("no client is set up here", "`cachemark setup` builds them")
        return chosen
    texts = matching_clients(typed, known)
    for spec in (parse_client(text, known) for text in texts):
        _check_playable(spec)
    return list(texts)


def _check_playable(spec: ClientSpec) -> None:
    spec.client.require(UsageError)
    if "profile" in spec.options:
        raise UsageError(f"client {spec.text!r}: a profile", "use --profile")
