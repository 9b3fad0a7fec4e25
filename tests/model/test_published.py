"""Published figures: each is the number at its place in the lines that its row quotes."""

import re
from collections import Counter
from collections.abc import Iterator

import pytest

from cachemark.model import suites
from cachemark.model.plan import make_plan
from cachemark.model.published import PublishedTable, Row, published_files

SUITES = ("emcache", "inprocess-vs-network", "java-clients", "ruby-clients", "server-modes")
LISTS = ("runs_ms", "timeouts", "bins", "percentiles")
NUMBER = re.compile(r"≈ 10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)|[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?")
SUPERSCRIPTS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
# How many figures each page has. A list counts with its elements, a bin or percentile as one.
COUNTS = {
    "emcache": {
        "get_k": 4, "set_k": 4, "set_noreply_k": 4, "version_k": 4, "items_k": 4, "megabytes": 4,
        "user_mb": 1, "bytes_mb": 1, "bytes_percent": 1, "rss_mb": 1, "rss_percent": 1,
        "key_overhead_bytes": 1, "value_overhead_bytes": 1,
    },
    "inprocess-vs-network": {"summed_s": 60, "memory_mb": 28},
    "java-clients": {
        "count": 12, "score_per_s": 12, "error_per_s": 12,
        "samples": 12, "mean_s": 12, "error_s": 12,
        "result_samples": 12, "result_mean_s": 12, "result_error_s": 12,
        "percentiles": 120, "bins": 171,
    },
    "ruby-clients": {"user_s": 74, "system_s": 74, "total_s": 74, "real_s": 74},
    "server-modes": {"runs_ms": 36, "timeouts": 36, "txn_ms": 4, "operation_ms": 4},
}  # fmt: skip


def numbers(quote: str) -> list[float]:
    """All numbers of some lines, in their order."""
    return [
        10.0 ** int(found[1].translate(SUPERSCRIPTS))
        if found[1]
        else float(found[0].replace(",", ""))
        for found in NUMBER.finditer(quote)
    ]


def rows(suite: str, *, later: bool = False) -> Iterator[tuple[PublishedTable, Row]]:
    """All rows of a suite's pages, with averages."""
    for file in published_files(suite):
        if file.page.later == later:
            for table in file.table:
                for row in [*table.row, *table.average]:
                    yield table, row


def figures(row: Row) -> dict[str, list[list[float]]]:
    """Name → elements of one number or more; a figure that is no list is one element."""
    found: dict[str, list[list[float]]] = {name: [[value]] for name, value in row.figures.items()}
    for name in LISTS:
        elements = getattr(row, name)
        if elements:
            found[name] = [list(e) if isinstance(e, tuple) else [float(e)] for e in elements]
    return found


def quoted(row: Row, table: PublishedTable, name: str, elements: int, width: int) -> list[float]:
    """The numbers that stand where a figure's place says."""
    place = (row.numbers or table.numbers)[name]
    first, step = place if isinstance(place, tuple) else (place, width)
    assert first >= 1
    assert step >= width
    everything = numbers(row.quote or table.quote)
    starts = [first - 1 + step * at for at in range(elements)]
    return [everything[start + offset] for start in starts for offset in range(width)]


@pytest.mark.parametrize("later", [False, True], ids=["page", "later"])
@pytest.mark.parametrize("suite", SUITES)
def test_each_figure_is_the_number_at_its_place(suite: str, later: bool) -> None:
    for table, row in rows(suite, later=later):
        for name, elements in figures(row).items():
            flat = [value for element in elements for value in element]
            found = quoted(row, table, name, len(elements), len(elements[0]))
            assert flat == pytest.approx(found, rel=1e-12), (table.title, row.label, name)


@pytest.mark.parametrize("suite", SUITES)
def test_each_fact_has_the_words_of_its_page(suite: str) -> None:
    facts = [fact for file in published_files(suite) for fact in file.fact]
    assert facts
    for fact in facts:
        assert fact.then in (fact.quote or fact.then), fact.what
        assert bool(fact.here) != bool(fact.now), fact.what


@pytest.mark.parametrize("suite", SUITES)
def test_each_place_is_of_one_figure(suite: str) -> None:
    for later in (False, True):
        for table, row in rows(suite, later=later):
            known = figures(row)
            if known:
                assert set(known) == set(row.numbers or table.numbers), (table.title, row.label)
                assert row.section or table.section


def test_lists_have_each_number_of_their_part_of_the_quote() -> None:
    """No bin, percentile or run of a quote is left out."""
    for later in (False, True):
        for _, row in rows("java-clients", later=later):
            assert len(row.bins) == len(re.findall(r"^ *\[", row.quote, re.MULTILINE))
            assert len(row.percentiles) == row.quote.count("p(")
    for table, row in rows("server-modes"):
        if row not in table.average:
            assert len(row.runs_ms) == len(row.timeouts) == len(row.quote.split("\n")) == 3


@pytest.mark.parametrize("suite", SUITES)
def test_no_published_figure_is_missing(suite: str) -> None:
    counted: Counter[str] = Counter()
    for _, row in rows(suite):
        counted.update({name: len(elements) for name, elements in figures(row).items()})
    assert counted == COUNTS[suite]


def test_the_later_section_has_as_many_figures() -> None:
    counted: Counter[str] = Counter()
    for _, row in rows("java-clients", later=True):
        counted.update({name: len(elements) for name, elements in figures(row).items()})
    assert counted == {**COUNTS["java-clients"], "bins": 162}


@pytest.mark.parametrize("suite", SUITES)
def test_a_row_names_a_cell_of_its_suite(suite: str) -> None:
    grid = suites.find(suite)
    workloads = {workload.name: workload for workload in grid.workloads}
    for later in (False, True):
        for table, row in rows(suite, later=later):
            if not row.client:
                continue
            # The later section has 128 threads, for which the suite is run with `--threads 128`.
            load = row.load.replace("128-threads", "32-threads") if later else row.load
            assert row.client in (*grid.clients, *grid.in_process), (table.title, row.label)
            assert load in (workloads[row.workload].loads or [each.name for each in grid.loads])


def test_the_small_grid_of_java_clients_has_every_published_cell() -> None:
    """All of them, in a few minutes: whoever has no more time sees the whole page repeated."""
    grid = suites.find("java-clients", quick=True)
    loads = {load.name for load in grid.loads}
    workloads = {workload.name: workload.loads or loads for workload in grid.workloads}
    for _, row in rows("java-clients"):
        assert row.client in grid.clients, row.label
        assert row.load in loads & set(workloads[row.workload]), row.label


@pytest.mark.parametrize("suite", ["java-clients", "ruby-clients", "server-modes"])
def test_the_small_grid_plays_a_row_of_each_table(suite: str) -> None:
    planned = small_grid(suite)
    played = {
        table.title: any((row.client, row.workload, row.load) in planned for row in table.row)
        for table, _ in rows(suite)
    }
    assert played
    assert [title for title, is_played in played.items() if not is_played] == []


def test_the_small_processes_grid_plays_reads_and_20_writes() -> None:
    """A hundred processes take longer than a small grid may."""
    planned = small_grid("inprocess-vs-network")
    played = {
        table.title
        for table, row in rows("inprocess-vs-network")
        if (row.client, row.workload, row.load) in planned
    }
    assert played == {"Write, 1 process", "Write, 20 processes", "Read, 1 process"}


def test_the_small_emcache_grid_plays_its_rates_and_fill() -> None:
    """Its tables have columns by workload; memory is read from the fill."""
    workloads = {workload for _, workload, _ in small_grid("emcache")}
    assert workloads == {"get", "set-noreply", "fill"}


def small_grid(suite: str) -> set[tuple[str, str, str]]:
    """Client, workload and load of each cell that `--quick` plans."""
    plan = make_plan(suites.find(suite, quick=True))
    return {(cell.client, cell.workload, cell.load) for cell in plan.cells}


def test_totals_are_user_and_system() -> None:
    """The pages' own totals add up."""
    for _, row in rows("ruby-clients"):
        known = row.figures
        assert known["user_s"] + known["system_s"] == pytest.approx(known["total_s"])
    for later in (False, True):
        for _, row in rows("java-clients", later=later):
            if row.bins:
                assert row.figures["samples"] == row.figures["result_samples"]
                # JMH drops the last bin; the slowest operations of all threads may be in it.
                dropped = row.figures["samples"] - sum(count for *_, count in row.bins)
                assert 0 <= dropped < 200
    for table, average in rows("server-modes"):
        if average in table.average:
            runs = [
                run
                for row in table.row
                if row.label.startswith(f"{average.label},")
                for run in row.runs_ms
            ]
            # The page cuts what is behind the second decimal.
            assert sum(runs) / len(runs) == pytest.approx(average.figures["txn_ms"], abs=0.011)
            assert average.figures["operation_ms"] == pytest.approx(
                average.figures["txn_ms"] / 3, abs=0.011
            )
