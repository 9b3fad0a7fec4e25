"""`cachemark setup`: build the workers of each language."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from cachemark.endpoints.clients import workers_folder
from cachemark.endpoints.worker_setup import (
    SetupResult,
    WorkerFolder,
    build,
    install_packages,
    worker_folders,
)
from cachemark.report.console import plain_console

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
    The exit status is 1 if a build failed, or if a named language is missing.
    """
    console = plain_console(soft_wrap=True)
    states = []
    for shop in worker_folders(workers_folder(), languages):
        built = build(shop)
        if built.state == "missing" and install and shop.packages:
            console.print(f"setup: installing {' '.join(shop.packages)}")
            install_packages(shop.packages)
            built = build(shop)
        states.append(built.state)
        _tell(console, shop, built)
    return 1 if "failed" in states or (languages and "missing" in states) else 0


def _tell(console: Console, shop: WorkerFolder, built: SetupResult) -> None:
    console.print(f"[{_COLOURS[built.state]}]{built.state:8}[/] {built.name:10} ", end="")
    console.print(built.text, markup=False)
    if built.state == "missing" and shop.packages:
        console.print(f"{'':19} `cachemark setup --install {shop.name}` installs Debian's packages")
