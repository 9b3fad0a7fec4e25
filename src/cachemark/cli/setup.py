"""`cachemark setup`: build the workers of each language."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from cachemark.cli import completers, setup_lists
from cachemark.endpoints.client_readiness import query_workers
from cachemark.endpoints.clients import registry, workers_folder
from cachemark.endpoints.worker_setup import (
    SetupResult,
    WorkerFolder,
    build_all,
    install_packages,
    worker_folders,
)
from cachemark.host import process
from cachemark.model.errors import UsageError
from cachemark.report.console import plain_console

_COLOURS = {"ready": "green", "missing": "yellow", "failed": "red"}


def setup(
    *languages: Annotated[str, Parameter(completer=completers.languages)],
    install: Annotated[
        bool, Parameter(help="first install missing Debian packages (with sudo apt-get)")
    ] = False,
) -> int:
    """Build the workers of all languages, or of some, each inside its own folder.

    If a toolchain is missing, it prints how to install it, and continues with the next language.
    Two names list software that you get from its authors: `peers`, the other load generators of
    `cachemark fidelity --tool`; and `originals`, the servers and libraries of the five original
    benchmarks. A list says what is here, and how to get the rest. The exit status is 1 if a build
    failed, or if a named language is missing.
    """
    console = plain_console(soft_wrap=True)
    lists = [name for name in setup_lists.LISTS if name in languages]
    named = tuple(name for name in languages if name not in lists)
    for name in named:
        if has_it := setup_lists.list_of(name):
            raise UsageError(f"{name!r} is no language", f"`cachemark setup {has_it}` has it")
    if install and languages == (setup_lists.ORIGINALS_LIST,):
        raise UsageError("--install: Debian has none of the originals", "leave it out")
    folders = worker_folders(workers_folder(), named)
    for name in lists:
        _show_list(console, name, install=install)
    if lists and not named:
        return 0
    results = _build(console, folders, install=install)
    if install and (packages := _packages(results)):
        console.print(f"setup: installing {' '.join(packages)}")
        install_packages(packages)
        again = [result.folder for result in results if result.state == "missing"]
        ready = [result for result in results if result.state != "missing"]
        results = [*ready, *_build(console, again, install=False)]
    _record_clients({result.folder.name for result in results})
    states = {result.state for result in results}
    return 1 if "failed" in states or (named and "missing" in states) else 0


def _build(console: Console, folders: list[WorkerFolder], *, install: bool) -> list[SetupResult]:
    """Build, and show each result, except languages whose packages are installed next."""
    results: list[SetupResult] = []
    for result in build_all(folders):
        results.append(result)
        if not (install and result.state == "missing" and result.folder.packages):
            _show(console, result)
    return results


def _record_clients(languages: set[str]) -> None:
    """Ask the workers of these languages, so that `cachemark clients` need not start them."""
    folder = workers_folder()
    known = registry(process.binary_path(), folder).values()
    for _ in query_workers([it for it in known if Path(it.folder).name in languages], folder):
        pass


def _packages(results: list[SetupResult]) -> list[str]:
    """The Debian packages of all folders whose toolchain is missing, each once."""
    missing = [result.folder for result in results if result.state == "missing"]
    return list(dict.fromkeys(package for folder in missing for package in folder.packages))


def _show(console: Console, result: SetupResult) -> None:
    folder, state = result.folder, result.state
    console.print(
        f"[{_COLOURS[state]}]{state:8}[/] {folder.name:10} {result.elapsed_s:4.0f} s  ", end=""
    )
    console.print(result.text, markup=False)
    if state == "missing" and folder.packages:
        remedy = f"`cachemark setup --install {folder.name}` installs Debian's packages"
        console.print(f"{'':27} {remedy}")


def _show_list(console: Console, name: str, *, install: bool) -> None:
    """Install what Debian has of a list, if asked to, and show all of it. Raises UsageError."""
    if install and (packages := setup_lists.packages(name)):
        console.print(f"setup: installing {' '.join(packages)}")
        install_packages(packages)
    for listed in setup_lists.LISTS[name]():
        state = "ready" if listed.ready else "missing"
        console.print(f"[{_COLOURS[state]}]{state:8}[/] {listed.name:20} ", end="")
        console.print(listed.text, markup=False)
