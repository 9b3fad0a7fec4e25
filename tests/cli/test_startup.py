"""A verb starts quickly: what is slow to import is imported where it is needed."""

import subprocess
import sys

import pytest

from cachemark.cli import VERBS

SLOW = {"importlib.metadata", "jinja2", "numpy", "prometheus_client", "rich.progress", "scipy"}
_PLAYS = {"importlib.metadata", "numpy", "rich.progress"}
HELP = """
import contextlib, io, sys
from cachemark.cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main(["--help"])
print(*sys.modules, sep='\\n')
"""


@pytest.mark.parametrize(
    ("module", "needed"),
    [
        ("cachemark.cli", set()),
        ("cachemark.cli.clients", set()),
        ("cachemark.cli.run", _PLAYS),
        ("cachemark.cli.report", _PLAYS),
        ("cachemark.cli.compare", _PLAYS),
    ],
)
def test_slow_packages_are_imported_late(module: str, needed: set[str]) -> None:
    code = f"import sys, {module}; print(*sys.modules, sep='\\n')"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert SLOW & set(ended.stdout.split()) <= needed


def test_help_imports_neither_a_verb_nor_a_room_below() -> None:
    command = [sys.executable, "-c", HELP]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    modules = ended.stdout.split()
    assert "cachemark.cli" in modules
    rooms = {name.split(".")[1] for name in modules if name.startswith("cachemark.")}
    assert rooms == {"cli"}
    assert "msgspec" not in modules


def test_help_shows_every_verb_in_its_group() -> None:
    command = [sys.executable, "-m", "cachemark", "--help"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    panels = ended.stdout.split("╭─ ")[1:]
    assert [panel.split(" ")[0] for panel in panels] == [*(t.split()[0] for t in VERBS), "Options"]
    for panel, verbs in zip(panels, VERBS.values(), strict=False):
        assert [verb for verb in verbs if f"│ {verb} " not in panel] == []
