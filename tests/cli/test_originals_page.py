"""docs/originals.md: its commands are accepted, and its table has the counts of the data."""

import re
import shlex

import pytest

from tests.cli.in_process import Inside
from tests.conftest import ROOT
from tests.model.test_published import COUNTS, rows

PAGE = (ROOT / "docs" / "originals.md").read_text(encoding="utf-8")
# Words that a reader replaces.
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


# A claim of constcache on the page → the other row, and the figures of 100 and 50 processes.
CLAIMS = [
    ("its writes are not better than", "Write", "memcached (uncompressed)", "1.03 ×", "0.94 ×"),
    ("faster than those of compressed", "Write", "memcached (compressed)", "1.68 ×", "1.45 ×"),
    ("faster than those of constcache(16)", "Write", "constcache(16)", "1.62 ×", "1.20 ×"),
    ("its reads are more than 80", "Read", "memcached (compressed)", "120 ×", "78 ×"),
]


@pytest.mark.parametrize(("claim", "table", "other", "with_100", "with_50"), CLAIMS)
def test_a_claim_of_constcache_is_judged_by_its_figures(
    claim: str, table: str, other: str, with_100: str, with_50: str
) -> None:
    (line,) = [line for line in PAGE.splitlines() if line.startswith("| ") and claim in line]
    seconds = {row.label: row.figures["summed_s"] for of, row in rows("inprocess-vs-network")
               if of.title.startswith(f"{table},") and row.is_published}  # fmt: skip
    for text, processes in ((with_100, "100 processes"), (with_50, "50 processes")):
        times = seconds[f"{other}, {processes}"] / seconds[f"constcache(20), {processes}"]
        digits = len(text.partition(" ")[0].partition(".")[2])
        assert f"{times:.{digits}f} ×" == text
        assert text in line
    # A client that is 1.03 times as fast is better.
    assert "yes" not in line


def test_the_pages_median_is_of_every_set_and_get() -> None:
    assert "every median of set and get with 32 threads is 0.001 s" in PAGE
    title = "Set and get of four keys, 32 threads: sampled times"
    of_set_get = [row for table, row in rows("java-clients") if table.title == title]
    medians = [dict(row.percentiles)[50] for row in of_set_get]
    assert medians == [0.001] * 6


@pytest.mark.parametrize("suite", ["ruby-clients", "server-modes"])
def test_the_table_has_the_cells_of_the_data(suite: str) -> None:
    published = [row for table, row in rows(suite) if row not in table.average]
    _, cells, of_today = counts_of_the_page()[suite]
    assert cells == len(published)
    assert of_today == sum(bool(row.client) for row in published)
