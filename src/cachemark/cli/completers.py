"""Completions that depend on this machine: names of runs, suites, clients and servers.

The script of `cachemark completion` starts `cachemark` when such a word is completed. An error here
offers nothing. Every verb imports this module: what is slow to import is imported for its words.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.completion import CompletionContext

from cachemark.endpoints.clients import registry
from cachemark.host import process
from cachemark.host.shipped_folders import shipped_folder
from cachemark.model import suites
from cachemark.model.experiment import Experiment
from cachemark.model.faults import all_faults
from cachemark.model.presets import load_presets
from cachemark.runs.storage.store import latest_run, open_run, run_names

_RUNS = "--runs"

Dimension = Literal["clients", "servers", "workloads", "loads"]
Offers = Iterable[str | tuple[str, str]]
Completer = Callable[[CompletionContext], Offers]


def repeated(completer: Completer, what: str, **options: Any) -> Parameter:
    """An option that may be repeated, whose values a shell offers."""
    return Parameter(completer=completer, help=f"{what} (may be repeated)", **options)


def runs(context: CompletionContext) -> Offers:
    """The runs of the store that is named, latest first; the folders, if a path is typed."""
    if "/" in context.incomplete:
        return _paths(context.incomplete, "")
    return [*reversed(run_names(_store(context)))]


def runs_and_terms(context: CompletionContext) -> Offers:
    """Runs, and the verdicts and rules that `explain` knows."""
    from cachemark.analysis.verdict.explanations import explanations  # noqa: PLC0415

    return [*runs(context), *explanations().names]


def experiments(context: CompletionContext) -> Offers:
    """Suites with their questions, and TOML files; with `--resume` the runs."""
    resume = context.get("--resume")
    if resume is not None and resume.provided:
        return runs(context)
    known = [(name, suites.find(name).question) for name in suites.names()]
    return [*known, *_paths(context.incomplete, ".toml")]


def clients(_: CompletionContext) -> Offers:
    """All clients, whether they are set up or not."""
    folder = shipped_folder("workers", "CACHEMARK_WORKERS")
    return [(client.id, client.note) for client in registry(process.ENGINE, folder).values()]


def servers(_: CompletionContext) -> Offers:
    """The kinds of servers."""
    from cachemark.endpoints.servers import kinds  # noqa: PLC0415

    return [(kind.name, kind.summary) for kind in kinds()]


# Of verbs whose clients are words: the option by which the other verbs know them.
ClientOption = Annotated[tuple[str, ...], repeated(clients, "a client", name="--client")]


def languages(_: CompletionContext) -> Offers:
    """The languages whose workers can be built, and the lists that `setup` knows."""
    from cachemark.cli.setup_lists import LISTS  # noqa: PLC0415

    folder = shipped_folder("workers", "CACHEMARK_WORKERS")
    return [*sorted(path.parent.name for path in folder.glob("*/setup")), *LISTS]


def presets(_: CompletionContext) -> Offers:
    """The names of preset workloads."""
    return list(load_presets(process.binary_path()))


def faults(_: CompletionContext) -> Offers:
    """The faults of `resilience`."""
    return list(all_faults())


def in_suite(dimension: Dimension) -> Completer:
    """The names of a dimension of the suite or file that is typed."""

    def offered(context: CompletionContext) -> Offers:
        return _names(suites.find(_first(context) or suites.BASE), dimension)

    return offered


def in_run(dimension: Dimension) -> Completer:
    """The names of a dimension of the run that is typed, or of the latest one."""

    def offered(context: CompletionContext) -> Offers:
        name, store = _first(context), _store(context)
        run = latest_run(store) if name in ("", "latest") else open_run(name, store)
        return _names(run.header.experiment, dimension)

    return offered


def clients_to_compare(context: CompletionContext) -> Offers:
    """The clients of the run that is typed; with `--play` all clients."""
    play = context.get("--play")
    if play is not None and play.provided:
        return clients(context)
    return in_run("clients")(context)


def _names(experiment: Experiment, dimension: Dimension) -> list[str]:
    if dimension == "workloads":
        return [workload.name for workload in experiment.workloads]
    if dimension == "loads":
        return [load.name for load in experiment.loads]
    return [*(experiment.clients if dimension == "clients" else experiment.servers)]


def _store(context: CompletionContext) -> Path:
    typed = context.get(_RUNS)
    return Path((typed and typed.raw) or "results").expanduser()


def _first(context: CompletionContext) -> str:
    """The first word that is no option; empty if there is none."""
    words = [word.value for one in context.arguments if one.index == 0 for word in one.tokens]
    return words[0] if words else ""


def _paths(incomplete: str, suffix: str) -> list[str]:
    """Folders, and files with this suffix, whose paths begin with the typed text."""
    head, slash, start = incomplete.rpartition("/")
    folder = Path(head + slash or ".").expanduser()
    found = sorted(folder.glob(f"{start}*"))
    folders = [f"{head}{slash}{path.name}/" for path in found if path.is_dir()]
    files = [f"{head}{slash}{path.name}" for path in found if path.is_file()]
    return [*folders, *(name for name in files if suffix and name.endswith(suffix))]
