"""A verb starts quickly: what is slow to import is imported where it is needed."""

import re
import subprocess
import sys

import pytest

from cachemark.cli.front_page import VERBS, front_page
from cachemark.cli.program import app
from tests.cli.in_process import Inside

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
        ("cachemark.cli.completers", {"importlib.metadata"}),
        ("cachemark.cli.run", _PLAYS),
        ("cachemark.cli.report", _PLAYS),
        ("cachemark.cli.compare", _PLAYS),
    ],
)
def test_slow_packages_are_imported_late(module: str, needed: set[str]) -> None:
    code = f"import sys, {module}; print(*sys.modules, sep='\\n')"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert SLOW & set(ended.stdout.split()) <= needed


def test_help_imports_no_verb_no_room_below_and_no_parser() -> None:
    command = [sys.executable, "-c", HELP]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    modules = ended.stdout.split()
    assert "cachemark.cli" in modules
    rooms = {name.split(".")[1] for name in modules if name.startswith("cachemark.")}
    assert rooms == {"cli"}
    assert {"cyclopts", "msgspec", "rich"}.isdisjoint(modules)


@pytest.mark.parametrize("arguments", [(), ("-h",), ("--help",)])
def test_help_shows_every_verb_in_its_group(arguments: tuple[str, ...], inside: Inside) -> None:
    groups = {group.split("\n")[0]: group for group in inside(*arguments).stdout.split("\n\n")}
    for title, verbs in VERBS.items():
        shown = [line.split()[0] for line in groups[title].split("\n")[1:] if line[2] != " "]
        assert shown == list(verbs)
    assert "Usage: cachemark VERB [OPTIONS]" in groups
    assert "--version" in groups["Options"]


@pytest.mark.parametrize("columns", [20, 40, 80, 300])
def test_help_is_as_wide_as_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    page = front_page()
    assert max(map(len, page.split("\n"))) <= max(columns, len("Usage: cachemark VERB [OPTIONS]"))
    assert all(verb in page for verbs in VERBS.values() for verb in verbs)


@pytest.mark.parametrize("verb", [verb for verbs in VERBS.values() for verb in verbs])
def test_help_shows_every_option_that_is_not_hidden(verb: str, inside: Inside) -> None:
    """An option without any group would have no place in a page."""
    arguments = app[verb].assemble_argument_collection()
    named = [one for one in arguments if one.parameter.show is not False and one.names]
    shown = inside(verb, "--help").stdout
    assert [
        one.names for one in named if one.show and not set(one.names) & set(shown.split())
    ] == []
    assert [one.names for one in named if one.parameter.group is None] == []


def test_help_of_run_shows_25_options_beside_set(inside: Inside) -> None:
    shown = re.findall(r"^│ --([a-z-]+)", inside("run", "--help").stdout, re.MULTILINE)
    assert len(shown) == 26
    assert "set" in shown
