"""docs/originals.md: its commands are accepted, and its table has the counts of the data."""

from __future__ import annotations

import re
import shlex

import pytest

from tests.cli.in_process import Inside, inside
from tests.conftest import ROOT
from tests.model.test_published import COUNTS, rows

__all__ = ["inside"]

PAGE = (ROOT / "docs" / "originals.md").read_text(encoding="utf-8")
# What a reader replaces.
PLACEHOLDERS = {"HOST:PORT": "127.0.0.1:1", "'pypy/*'": "pypy/pymemcache"}


def commands() -> list[str]:
    """The whole commands of `run` in the page's tables."""
    spans = (span for line in PAGE.splitlines() if line.startswith("|")
             for span in re.findall(r"`([^`]+)`", line))  # fmt: skip
    return sorted({span for span in spans if span.startswith("cachemark run ")})


@pytest.mark.parametrize("command", commands())
def test_a_command_is_accepted(command: str, inside: Inside) -> None:
    for placeholder, text in PLACEHOLDERS.items():
        command = command.replace(placeholder, text)
    ended = inside(*shlex.split(command)[1:], "--dry-run", "--details")
    assert ended.returncode == 0, ended.stderr
    assert "block 1" in ended.stdout


def counts_of_the_page() -> dict[str, list[int]]:
    """Suite → published figures, cells, cells of today."""
    found = re.findall(
        r"^\| `([a-z-]+)`(, later)? \| (\d+) \| (\d+) \| (\d+) \|", PAGE, re.MULTILINE
    )
    return {suite + later: [int(count) for count in counts] for suite, later, *counts in found}


def test_the_table_has_the_counts_of_the_data() -> None:
    page = counts_of_the_page()
    assert {suite: counts[0] for suite, counts in page.items() if suite in COUNTS} == {
        suite: sum(counts.values()) for suite, counts in COUNTS.items()
    }
    later = {**COUNTS["java-clients"], "bins": 162}
    assert page["java-clients, later"][0] == sum(later.values())


@pytest.mark.parametrize("suite", ["ruby-clients", "server-modes"])
def test_the_table_has_the_cells_of_the_data(suite: str) -> None:
    published = [row for table, row in rows(suite) if row not in table.average]
    _, cells, of_today = counts_of_the_page()[suite]
    assert cells == len(published)
    assert of_today == sum(bool(row.client) for row in published)
