"""The published figures in reports and forms: beside the same figures of made-up trials."""

import random
import re

import msgspec
import pytest

from cachemark.analysis.statistics import summarise
from cachemark.model import suites
from cachemark.model.experiment import Values
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.plan import NO_SERVER
from cachemark.model.protocol import Operation
from cachemark.report.build import build
from cachemark.report.exports.registry import EXPORTS
from cachemark.report.model import Section
from cachemark.report.originals import emcache, published
from cachemark.report.series import build_exported_run
from tests.builders.outcomes import at, header, measured, operation

# Suite → the format that its original used.
FORMS = {
    "java-clients": "jmh",
    "ruby-clients": "ruby-bench",
    "server-modes": "quickcached",
    "emcache": "emcache",
    "inprocess-vs-network": "constcache",
}


def outcome(suite: str, client: str, workload: str, load: str, block: int = 0) -> Outcome:
    """A valid trial of a suite's cell: a thousand operations in a second."""
    grid = suites.find(suite)
    base = measured(client, block, 1000)
    assert base.measure
    server = NO_SERVER if client in grid.in_process else grid.servers[0]
    count = 1200
    done = operation(count, 10**6, random.Random(f"{client}{workload}{block}"))
    return msgspec.structs.replace(
        base,
        trial=msgspec.structs.replace(
            base.trial,
            index=block,
            cell=Cell(client=client, server=server, workload=workload, load=load),
        ),
        workload=next(each for each in grid.workloads if each.name == workload),
        load=next(each for each in grid.loads if each.name == load),
        measure=msgspec.structs.replace(base.measure, operations={"get": done}),
        stats_after={"bytes": str(3 * 2**20)},
        server_use=base.server_use if server != NO_SERVER else None,
    )


def tables(suite: str, *outcomes: Outcome) -> list[Section]:
    return published.sections(suite, outcomes, summarise(outcomes))


def column(section: Section, title: str) -> dict[str, str]:
    """First column → the column of that title."""
    at = section.columns.index(title)
    return {row[0]: row[at] for row in section.rows}


def test_each_column_has_a_cell_in_each_row() -> None:
    found = [
        *tables("ruby-clients", outcome("ruby-clients", "ruby/dalli", "set-plain", "one-caller")),
        *tables("server-modes", outcome("server-modes", "java/xmemcached", "txn-100",
                                        "text-10-threads")),
        *tables("inprocess-vs-network", outcome("inprocess-vs-network", "php/memcached", "set-10",
                                                "10-processes")),
        *tables("java-clients", outcome("java-clients", "java/folsom", "multiget",
                                        "text-blocking-32-threads")),
    ]  # fmt: skip
    assert len(found) == 5
    for section in found:
        assert {len(row) for row in section.rows} == {len(section.columns)}, section.title


def test_user_system_and_total_are_beside_real() -> None:
    suite = "ruby-clients"
    (section,) = tables(suite, outcome(suite, "ruby/dalli", "set-plain", "one-caller"))
    then = column(section, "published: user + system = total, s")
    here = column(section, "here: user + system = total, s")
    assert then["memcached:set:plain"] == "5.30 + 4.64 = 9.94"
    # 0.4 s and 0.1 s for 200 loop bodies of six operations each; the page is of 100,000.
    assert here["dalli:set:plain"] == "200.00 + 50.00 = 250.00"
    assert here["memcached:set:plain"] == "–"
    assert column(section, "published, s")["memcached:set:plain"] == "15.634232"


def test_the_best_row_has_both_figures() -> None:
    """dalli's are not the best of the page: others are, which were not played here."""
    suite, load = "ruby-clients", "one-caller"
    (section,) = tables(
        suite,
        outcome(suite, "ruby/dalli", "set-plain", load),
        longer(outcome(suite, "ruby/memcache-client", "set-plain", load), 2),
    )
    at = [place for place, title in enumerate(section.columns) if title == "× best"]
    then, here = ({row[0]: row[place] for row in section.rows} for place in at)
    assert {name for name, times in then.items() if times != "–"} == {
        "dalli:set:plain",
        "mem_cache:set:plain",
    }
    assert here["dalli:set:plain"] == "1.00"
    assert here["mem_cache:set:plain"] == "2.00"
    assert min(times for times in then.values() if times != "–") == "1.00"


def longer(trial: Outcome, times: float) -> Outcome:
    """The same trial, with a window of a multiple of the length."""
    assert trial.measure
    elapsed_ns = round(trial.measure.elapsed_ns * times)
    measure = msgspec.structs.replace(trial.measure, elapsed_ns=elapsed_ns)
    return msgspec.structs.replace(trial, measure=measure)


@pytest.mark.parametrize(
    ("suite", "cell", "row", "line"),
    [
        (
            "ruby-clients",
            ("ruby/dalli", "set-plain", "one-caller"),
            "dalli:set:plain",
            r"ruby/dalli:set-plain.*\( *([\d.]+)\)",
        ),
        (
            "server-modes",
            ("java/xmemcached", "txn-100", "binary-10-threads"),
            "XMemcached, 10 threads",
            r"Avg Time per Txn: ([\d.]+) ms",
        ),
    ],
)
def test_a_figure_of_several_trials_agrees_in_report_and_form(
    suite: str, cell: tuple[str, str, str], row: str, line: str
) -> None:
    """Also if one trial was ten times slower: the figure is that of both together."""
    first = outcome(suite, *cell)
    both = [first, longer(outcome(suite, *cell, block=1), 10)]
    (section,) = tables(suite, *both)
    unit = section.unit
    shown = float(column(section, f"as published, here, {unit}")[row])
    (form,) = EXPORTS[FORMS[suite]](build_exported_run(header(suites.find(suite)), both)).values()
    found = re.search(line, form)
    assert found
    assert float(found[1]) == pytest.approx(shown, rel=1e-3)
    (alone,) = tables(suite, first)
    one = float(column(alone, f"as published, here, {unit}")[row])
    assert shown == pytest.approx(5.5 * one, rel=1e-3)


def test_one_cell_repeats_what_was_published_twice() -> None:
    """And makes no pair of cells whose order could be compared."""
    suite = "ruby-clients"
    (section,) = tables(suite, outcome(suite, "ruby/memcached@defaults", "set-plain", "one-caller"))
    here = column(section, "as published, here, s")
    assert here["memcached:set:plain"] == here["memcached_disable_binary:set:plain"] != "–"
    assert column(section, "client of today")["memcached_rails:set:plain"] == "ruby/memcached_rails"
    assert not [note for note in section.notes if note.startswith("the same order")]


def test_sampled_times_are_above_the_response_times_of_today() -> None:
    suite, load = "java-clients", "text-blocking-32-threads"
    rates, times = tables(
        suite, *[outcome(suite, "java/folsom", "multiget", load, block) for block in range(3)]
    )
    assert column(rates, "published: error")["measureBinaryFolsomMultiget"] == "± 347.585"
    assert times.title.endswith("s/op")
    label = "measureAsciiFolsomMultiget"
    assert column(times, "N")[f"{label}, published"] == "38294"
    assert column(times, "N")[f"{label}, here"] == "3600"
    assert column(times, "p0")[f"{label}, published"] == "≈ 10⁻⁴"
    assert column(times, "p99")[f"{label}, published"] == "0.046"
    assert float(column(times, "p99")[f"{label}, here"]) == pytest.approx(0.002, rel=0.3)
    assert float(column(times, "±")[f"{label}, here"]) > 0
    # 3600 operations are too few for it.
    assert column(times, "p99.99")[f"{label}, here"] == "–"
    assert "measureBinaryFolsomMultiget, here" not in column(times, "N")


def test_memory_is_beside_memory() -> None:
    suite, load = "inprocess-vs-network", "10-processes"
    (section,) = tables(
        suite,
        outcome(suite, "php/memcached", "set-10", load),
        outcome(suite, "native/shm?memory=2g&hash_power=16", "set-10", load),
    )
    label = "memcached (uncompressed), 10 processes"
    assert column(section, "published: memory, MB")[label] == "147.3"
    assert column(section, "here: server's bytes, MB")[label] == "3"
    assert column(section, "here: server's RSS, MB")[label] == "2"
    today = "native/shm(16), 10 processes"
    assert column(section, "published, s")[today] == "–"
    assert column(section, "as published, here, s")[today] != "–"
    assert column(section, "here: server's RSS, MB")[today] == "–"
    # A cell that was neither published nor played has no row.
    assert "native/shm(20), 10 processes" not in column(section, "published, s")


def test_a_column_without_a_figure_is_left_out() -> None:
    suite = "inprocess-vs-network"
    (section,) = tables(suite, outcome(suite, "php/memcached", "get-1", "1-processes"))
    assert "published: memory, MB" not in section.columns
    assert "here: server's RSS, MB" in section.columns
    assert column(section, "published, s")["constcache(16), 1 process"] == "0.022"


def test_a_million_operations_of_one_process() -> None:
    """The third table: 1.2 ms each, of a million, not of ten thousand."""
    suite = "inprocess-vs-network"
    trial = outcome(suite, "php/memcached", "get-1-million", "1-processes")
    (section,) = tables(suite, trial)
    assert trial.measure
    busy_s = trial.measure.operations["get"].busy_ns / 1e9 / 1200 * 1_000_000
    here = column(section, "as published, here, s")["memcached (uncompressed), 1 process"]
    assert here == f"{busy_s:.0f}"


def test_single_runs_and_averages_are_shown() -> None:
    suite = "server-modes"
    trials = [
        outcome(suite, "java/xmemcached", "txn-100", f"binary-{load}")
        for load in ("1-threads", "10-threads", "20-threads-pool-10")
    ]
    (section,) = tables(suite, *trials)
    assert column(section, "published: runs, ms")["XMemcached, 10 threads"] == "1.4, 1.72, 5.15"
    assert column(section, "published, ms")["XMemcached, 10 threads"] == "2.757"
    averages = [note for note in section.notes if "published averages" in note]
    assert len(averages) == 2
    assert "2.66 ms a transaction, 0.88 ms an operation; the same mean here: 2.50 ms" in averages[0]
    assert "here" not in averages[1]


def test_other_work_under_the_same_name_is_not_compared() -> None:
    """Such as of `--size 2048`, or of `--depth 4`."""
    suite, load = "ruby-clients", "one-caller"
    own = outcome(suite, "ruby/dalli", "set-plain", load)
    other = outcome(suite, "ruby/memcached@defaults", "set-plain", load)
    larger = msgspec.structs.replace(
        other,
        workload=msgspec.structs.replace(other.workload, values=Values(size="2048")),
    )
    deeper = msgspec.structs.replace(other, load=msgspec.structs.replace(other.load, depth=4))
    for changed in (larger, deeper):
        (only,) = tables(suite, changed)
        assert only.title == "Not beside published figures"
        assert only.rows == [["set-plain, one-caller"]]
        section, only = tables(suite, own, changed)
        assert only.rows == [["set-plain, one-caller"]]
        assert column(section, "as published, here, s")["memcached:set:plain"] == "–"
        assert column(section, "right: ops/s")["memcached:set:plain"] == "–"


def test_the_later_section_is_marked() -> None:
    suite = "java-clients"
    trial = outcome(suite, "java/xmemcached", "set-get", "text-blocking-32-threads")
    load = msgspec.structs.replace(trial.load, name="text-blocking-128-threads", threads=128)
    rates, times = tables(suite, msgspec.structs.replace(at(trial, load=load.name), load=load))
    assert column(rates, "published, ops/s")["measureAsciiX"] == "49585.853"
    assert column(times, "N")["measureAsciiX, published"] == "953473"
    for section in (rates, times):
        assert any("later than the seed" in note for note in section.notes)


def test_units_of_a_fill_and_of_memory_are_the_pages() -> None:
    """MB/s are 10⁶ bytes, MB of memory 2²⁰; also if options gave the fill another name."""
    base = outcome("emcache", "native", "fill", "four-threads")
    batches = Operation(
        attempts=10, ok=10, keys=1000, key_bytes=10_000, value_bytes=590_000, busy_ns=2 * 10**9
    )
    # Between the batches, and no part of what was stored or of the time that it took.
    gets = Operation(attempts=10, ok=10, keys=10, key_bytes=100, value_bytes=5900, busy_ns=10**9)
    assert base.measure
    assert base.server_use
    fill = msgspec.structs.replace(
        at(base, workload="fill-1600k-keys"),
        measure=msgspec.structs.replace(
            base.measure,
            elapsed_ns=10**9 // 2,
            operations={"mset_noreply": batches, "get": gets},
        ),
        stats_after={"bytes": str(2**20)},
        server_use=msgspec.structs.replace(base.server_use, rss_after_bytes=2**21),
    )
    _, fills, memory = emcache.sections([fill])
    assert fills.rows[0] == ["published: memcached / cpython", "567 k/s – 317 MB/s", "–"]
    assert fills.rows[-1][1:] == ["0.5 k/s – 0 MB/s", "2.0 k/s – 1 MB/s"]
    assert memory.rows == [
        ["published: emcache", "716 MB", "819 MB (87%)", "993 MB (72%)", "–"],
        [base.trial.cell.server, "0.6 MB", "1.0 MB (57%)", "2.0 MB (29%)", "1.0 MB (57%)"],
    ]


@pytest.mark.parametrize("suite", FORMS)
def test_a_form_ends_with_what_its_original_published(suite: str) -> None:
    grid = suites.find(suite)
    workload = grid.workloads[0]
    load = (workload.loads or [grid.loads[0].name])[0]
    trial = outcome(suite, grid.clients[0], workload.name, load)
    (text,) = EXPORTS[FORMS[suite]](build_exported_run(header(grid), [trial])).values()
    own, _, page = text.partition("Published: ")
    assert own.strip()
    for line in {
        "java-clients": (
            "MemcachedClientsBenchmark.measureBinarySpyAsync         thrpt      20  40747.115 "
            "± 3124.136  ops/s",
            "    [0.225, 0.250) = 0",
        ),
        "ruby-clients": (f"{'memcached:set':77} 2.190000   2.240000   4.430000 (  7.033878)",),
        "server-modes": ("Avg Time per Operation: 0.62 ms",),
        "emcache": ("| 716mb            | 819mb (87% eff.)   | 993mb (72% eff.)        |",),
        "inprocess-vs-network": (
            "| 1         |    5.196     |      |    2.396     |      |     47.3     |       |"
            "     44.573    |       |",
        ),
    }[suite]:
        assert page.count(f"\n{line}\n") >= 1, line


def test_another_run_has_no_published_figures() -> None:
    grid = msgspec.structs.replace(suites.find("ruby-clients"), name="mine")
    trial = outcome("ruby-clients", "ruby/dalli", "set", "one-caller")
    (text,) = EXPORTS["ruby-bench"](build_exported_run(header(grid), [trial])).values()
    assert "Published" not in text
    assert [s for s in build(header(grid), [trial]).sections if s.topic == "published"] == []
