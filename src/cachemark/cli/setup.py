"""`cachemark setup`: build the workers of each language."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from cachemark.checks.fidelity.tools import TOOLS, Tool
from cachemark.endpoints.clients import workers_folder
from cachemark.endpoints.worker_setup import (
    SetupResult,
    WorkerFolder,
    build_all,
    install_packages,
    worker_folders,
)
from cachemark.report.console import plain_console

# Not a language: the other load generators, which `cachemark fidelity --tool` runs.
_PEERS = "peers"
_COLOURS = {"ready": "green", "missing": "yellow", "failed": "red"}


def setup(
    *languages: str,
    install: Annotated[
        bool,
        Parameter(negative="", help="first install missing Debian packages (with sudo apt-get)"),
    ] = False,
) -> int:
    """Build the workers of all languages, or of some, each inside its own folder.

    If a toolchain is missing, it prints how to install it, and continues with the next language.
    `peers` is no language: it lists the other load generators of `cachemark fidelity --tool`, and
    how to get each of them. The exit status is 1 if a build failed, or if a named language is
    missing.
    """
    console = plain_console(soft_wrap=True)
    named = tuple(name for name in languages if name != _PEERS)
    folders = worker_folders(workers_folder(), named)
    if _PEERS in languages:
        _set_up_peers(console, install=install)
        if not named:
            return 0
    results = _build(console, folders, install=install)
    if install and (packages := _packages(results)):
        console.print(f"setup: installing {' '.join(packages)}")
        install_packages(packages)
        again = [result.folder for result in results if result.state == "missing"]
        ready = [result for result in results if result.state != "missing"]
        results = [*ready, *_build(console, again, install=False)]
    states = {result.state for result in results}
    return 1 if "failed" in states or (named and "missing" in states) else 0


def _build(console: Console, folders: list[WorkerFolder], *, install: bool) -> list[SetupResult]:
    """Build, and show each result; one whose packages are installed next is not shown yet."""
    results: list[SetupResult] = []
    for result in build_all(folders):
        results.append(result)
        if not (install and result.state == "missing" and result.folder.packages):
            _show(console, result)
    return results


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


def _set_up_peers(console: Console, *, install: bool) -> None:
    """Install the load generators that Debian has, if asked to, and list all. Raises UsageError."""
    absent = [tool.package for tool in TOOLS.values() if tool.package and not tool.program()]
    if install and absent:
        console.print(f"setup: installing {' '.join(absent)}")
        install_packages(absent)
    for tool in TOOLS.values():
        program = tool.program()
        state = "ready" if program else "missing"
        console.print(f"[{_COLOURS[state]}]{state:8}[/] {tool.name:18} ", end="")
        console.print(program or _remedy(tool), markup=False)


def _remedy(tool: Tool) -> str:
    if tool.package:
        return f"`cachemark setup --install {_PEERS}` installs Debian's {tool.package}"
    tried = f" (tried: {tool.tried})" if tool.tried else ""
    return f"build it as {tool.home} says{tried}, and put {tool.programs[0]} on PATH"
