"""`cachemark setup`: build the workers, language by language."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from cachemark.clients import workers_folder
from cachemark.workshop import build, install_packages, missing_packages, workshops

_COLOURS = {"ready": "green", "missing": "yellow", "failed": "red"}


def setup(
    *languages: str,
    install: Annotated[
        bool, Parameter(negative="", help="install missing Debian packages first (sudo apt-get)")
    ] = False,
) -> int:
    """Build the workers of all languages, or of some, each inside its own folder.

    Where a toolchain is missing it says how to get it, and goes on. The exit status is 1 when a
    build failed, or a language that was named is missing.
    """
    console = Console(highlight=False, soft_wrap=True)
    shops = workshops(workers_folder(), languages)
    lacking = missing_packages(shops)
    if lacking and install:
        console.print(f"setup: installing {' '.join(lacking)}")
        install_packages(lacking)
        lacking = missing_packages(shops)
    states = []
    for shop in shops:
        built = build(shop)
        states.append(built.state)
        console.print(f"[{_COLOURS[built.state]}]{built.state:8}[/] {built.name:10} ", end="")
        console.print(built.text, markup=False)
    if lacking:
        console.print(f"not installed: {' '.join(lacking)}; `cachemark setup --install` gets them")
    return 1 if "failed" in states or (languages and "missing" in states) else 0
