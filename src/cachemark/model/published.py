"""The figures that the suites' originals published, with the place of each figure in the old page.

The data files are `suites/published/SUITE/*.toml`. A row quotes the lines of the page that its
figures come from. `numbers` has the place of each figure: the position of the number in the quote,
from 1. A list's place is the place of its first number, and the distance between its elements. A
row without a quote, or without places, has its table's. `100,000` is one number, and so is `≈
10⁻⁴`, JMH's text for about 0.0001.
"""

from importlib import resources

import msgspec

from cachemark.model import suites


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The figures of one cell, and the suite's cell that repeats it; no `client`: no cell does.

    A row without figures is a cell of the suite that the original did not have. `runs_ms` and
    `timeouts` have one element for each run. `bins` are a histogram: low, high, count.
    `percentiles` are pairs: percent and time.
    """

    label: str
    section: str = ""
    quote: str = ""
    numbers: dict[str, int | tuple[int, int]] = {}
    figures: dict[str, float] = {}
    runs_ms: list[float] = []
    timeouts: list[int] = []
    bins: list[tuple[float, float, int]] = []
    percentiles: list[tuple[float, float]] = []
    client: str = ""
    workload: str = ""
    load: str = ""

    @property
    def is_published(self) -> bool:
        """Whether the page has figures of this row."""
        return bool(self.figures or self.runs_ms)


class PublishedTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of a page. `figure` names the figure of the suite's run to compare it with.

    `section` is the page's title above the quoted lines, `heading` the first lines of its table.
    `average` has the averages that the page gives over all rows of a client.
    """

    title: str
    section: str
    figure: str
    unit: str
    formula: str
    heading: str
    quote: str = ""
    numbers: dict[str, int | tuple[int, int]] = {}
    ops_per_process: int = 10_000
    remarks: list[str]
    row: list[Row]
    average: list[Row] = []


class Page(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the figures were published; `later`: the original had them later than its page."""

    title: str
    version: str
    later: bool = False


class Fact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The page's notes on its machine, versions, defaults or limits, in its own words.

    `quote` is the page's line, if that is longer. Beside it, reports show the suite's own fact:
    `now`, or the fact `here` of a run (report/originals/facts.py has the names).
    """

    what: str
    then: str
    quote: str = ""
    here: str = ""
    now: str = ""


class PublishedFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A page, or a part of it, with its tables. `fact` is in the first part of a page."""

    page: Page
    fact: list[Fact] = []
    table: list[PublishedTable]


def published_files(suite: str) -> list[PublishedFile]:
    """The published figures of the benchmark that a suite repeats; empty if it repeats none."""
    folder = resources.files(suites) / "published" / suite
    if not folder.is_dir():
        return []
    paths = sorted(
        (entry for entry in folder.iterdir() if entry.name.endswith(".toml")),
        key=lambda entry: entry.name.removesuffix(".toml"),
    )
    return [
        msgspec.toml.decode(entry.read_text(encoding="utf-8"), type=PublishedFile)
        for entry in paths
    ]
