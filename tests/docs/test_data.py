"""The tables of docs/data: a page names each, with its command, and its figures agree with them."""

import csv
import math
import re
from itertools import pairwise

import pytest

from tests.conftest import ROOT

DATA = ROOT / "docs" / "data"
TABLES = sorted(path.name for path in DATA.iterdir())
PAGES = sorted((ROOT / "docs").glob("*.md"))

_HEADING = re.compile(r"^#{1,6} .*$", re.MULTILINE)
_MADE = re.compile(r"make ([a-z-]+)|(benchmarks/\w+\.py)|cachemark(?:-engine)? ([a-z-]+)")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_TIMES = re.compile(r"[+−]([0-9.]+)")


def rows(name: str) -> list[dict[str, str]]:
    with (DATA / f"{name}.csv").open(newline="", encoding="utf-8") as table:
        return list(csv.DictReader(table, strict=True))


def sections(text: str) -> list[str]:
    """A page's parts from heading to heading."""
    starts = [match.start() for match in _HEADING.finditer(text)]
    return [text[begin:end] for begin, end in pairwise([*starts, len(text)])]


def commands(text: str) -> list[str]:
    """The commands of a text that exist: targets of make, and benchmarks.

    test_commands.py and test_code_names.py check the verbs of cachemark.
    """
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    return [
        target or benchmark or verb
        for target, benchmark, verb in _MADE.findall(text)
        if verb or target in targets or (benchmark and (ROOT / benchmark).exists())
    ]


def page(name: str) -> str:
    """A page's words, one space apart."""
    return " ".join((ROOT / "docs" / f"{name}.md").read_text("utf-8").split())


def number(text: str) -> float:
    found = _NUMBER.search(text.replace(",", ""))
    assert found, text
    return float(found[0])


@pytest.mark.parametrize("name", TABLES)
def test_a_section_names_the_table_and_its_command(name: str) -> None:
    parts = [part for path in PAGES for part in sections(path.read_text("utf-8"))]
    naming = [part for part in parts if f"docs/data/{name}" in part]
    assert naming, f"no page names docs/data/{name}"
    assert any(commands(part) for part in naming)


def test_commands_that_do_not_exist_are_none() -> None:
    assert commands("make peers; `benchmarks/peers.py`; make nothing; benchmarks/NAME.py") == [
        "peers",
        "benchmarks/peers.py",
    ]


@pytest.mark.parametrize("name", TABLES)
def test_each_row_has_a_value_for_each_column(name: str) -> None:
    table = rows(name.removesuffix(".csv"))
    assert table
    assert all(None not in row and None not in row.values() for row in table)


def test_claims_hold_within_two_standard_errors() -> None:
    """400 runs for each statement: one standard error is one percent or two."""
    for row in rows("claims-2026-11"):
        should, told = row["should be"], [float(one) for one in _NUMBER.findall(row["is"])]
        limit = number(should)
        room = 2 * math.sqrt(limit * (100 - limit) / 400)
        assert should[0] in "≤≥", row
        assert told, row
        assert all(one <= limit + room for one in told) or should[0] == "≥", row
        assert all(one >= limit - room for one in told) or should[0] == "≤", row


def test_the_page_has_the_simulations_shares() -> None:
    text, table = page("methodology-statistics"), rows("rounds-simulation-false-differences")
    assert f"2,000 on each of {len(table)} kinds of machine" in text
    for column, should in (("twice", "≤ 5 %"), ("family", "≤ 5 %"), ("covered", "≥ 95 %")):
        shares = [number(row[column]) for row in table]
        assert f"| {should} | {min(shares)}–{max(shares)} % |" in text
    first = "A/A experiments on a machine with"
    at = next(n for n, row in enumerate(table) if row[first] == "slow phases of one client")
    assert min(table, key=lambda row: number(row["covered"])) == table[at]
    assert f"with 8 s it is {table[at + 1]['covered']}." in text
    power = rows("rounds-simulation-power")
    answered = {
        size: [number(row["better or worse"]) for row in power if row["true difference"] == size]
        for size in ("5 %", "10 %")
    }
    assert f"in at least {min(answered['10 %']):.0f} % of the runs" in text
    assert "in about six of ten at most" in text
    assert round(max(answered["5 %"]) / 10) == 6
    (unsteady,) = [row for row in power if list(row.values())[:2] == ["5 %", "4 %"]]
    assert f"in {unsteady['better or worse']} if an arm deviates by 4 %" in text


def test_findings_have_the_widths_of_rounds_and_trials() -> None:
    table = rows("precision-2026-11")
    assert all(commands(row["command"]) for row in table)
    usual = ("slices of 30 ms", "slices of 30 ms, in turn with trials")
    for told, settings in (
        ("intervals of {} to {} %", usual),
        (
            "trials that take as long {} to {} %",
            ("trials of 1 s", "trials of 1 s, in turn with rounds"),
        ),
    ):
        widths = [
            float(value)
            for row in table
            if row["setting"] in settings
            for column, value in row.items()
            if column.endswith("half_width_percent")
        ]
        assert told.format(f"±{min(widths)}", f"±{max(widths)}") in page("findings-2026-11")


def test_findings_have_the_ratios_of_io_uring() -> None:
    (row,) = [
        row
        for row in rows("peers-2026-11-cpu-ratio")
        if row["native ÷ this"] == "native client, io_uring"
    ]
    cells = {column: value for column, value in row.items() if "depth" in column}
    ratios = {column: value.partition(" ")[0] for column, value in cells.items()}
    plain = {"memcached": "memcached 1.6.45", "embedded": "embedded"}
    one, two = ([ratios[f"{name}, depth {depth}"] for name in plain.values()] for depth in (1, 16))
    told = (
        f"{' and '.join(one)} times the CPU time of io_uring at depth 1, {' and '.join(two)} times"
    )
    assert told in page("findings-2026-11")
    assert "All intervals contain 1." in page("findings-2026-11")
    for value in cells.values():
        _, low, high = map(float, _NUMBER.findall(value))
        assert low <= 1 <= high


def test_peers_have_the_ratios_of_cpu_time() -> None:
    by_client = {row["native ÷ this"]: row for row in rows("peers-2026-11-cpu-ratio")}
    text = page("peers")
    for depth in (1, 16):
        _, _, behind = text.partition(f"- depth {depth}: ")
        listed = re.split(r"[;.] ", behind)[0].rstrip(".;")
        found = re.findall(r"([A-Za-z_ -]+?(?: and [a-z-]+)?) ([0-9.]+[0-9])", listed)
        assert len(found) >= 4
        for names, ratio in found:
            for name in names.strip(" ,").split(" and "):
                row = by_client["null client (floor)" if name == "null client" else name]
                assert row[f"memcached 1.6.45, depth {depth}"].startswith(f"{ratio} (")


def test_peers_have_the_megabytes() -> None:
    few, many, _ = list(rows("peers-2026-11-memory-mb")[0])[1:]
    by_client = {row["client"]: row for row in rows("peers-2026-11-memory-mb")}
    of = {name: (row[few], row[many].replace("-", "")) for name, row in by_client.items()}
    others = [row[0] for name, row in of.items() if "native" not in name and "null" not in name]
    least, most = min(others, key=int), max(others, key=int)
    assert (of["mc-crusher"][0], of["cachecannon"][0]) == (least, most)
    text = page("peers")
    assert f"native client takes {of['native client'][0]} MB" in text
    assert f"from {least} (mc-crusher) to {int(most):,} MB (cachecannon)" in text
    told = f"native takes {of['native client'][1]} MB, memaslap {of['memaslap'][1]}, mc-crusher"
    told += f" {of['mc-crusher'][1]}, memtier_benchmark {int(of['memtier_benchmark'][1]):,}."
    assert told in text


def test_peers_have_the_errors_of_times() -> None:
    table = {row.pop("client"): row for row in rows("peers-2026-11-percentile-error-ms")}
    text = page("peers")
    native = [one for cell in table["native client"].values() for one in _TIMES.findall(cell)]
    assert all(cell.startswith("passed") for cell in table["native client"].values())
    assert f"passes all six cases. Its largest error is {max(map(float, native)):g} ms" in text
    for tool in ("memtier_benchmark", "mutilate"):
        # 90 ms is right.
        assert "p99 −89.5" in table[tool]["stall, open"]
    assert "report a p99 of 0.5 ms, and 90 ms is right" in text
    assert table["mutilate, `--depth 64`"]["stall, open"].startswith("passed")
    deep = table["memtier_benchmark, `--pipeline 64`"]["stall, open"]
    wrong = [float(one) for one in _TIMES.findall(deep)]
    assert f"wrong by {min(wrong):.0f} to {max(wrong):.0f} ms" in text
    closed = [table["memaslap"][case] for case in ("constant", "bimodal", "stall, closed")]
    wrong = [float(one) for cell in closed for one in _TIMES.findall(cell)]
    assert all(cell.startswith("failed") for cell in closed)
    assert f"all three closed cases by {min(wrong):g} to {max(wrong):g} ms" in text


def test_resilience_has_the_counts_of_verdicts() -> None:
    table, text = rows("resilience-2026-11"), page("resilience-2026-11")
    common = [row for row in table if row["profile"] == "common"]
    faults = list(table[0])[3:]
    assert text.startswith(
        f"# Resilience in November 2026 {len(common)} clients with all {len(faults)}"
    )
    verdicts = [row[fault] for row in common for fault in faults if row[fault] not in ("", "n/a")]
    apart = [verdict for verdict in verdicts if re.search(r"\d/\d", verdict)]
    assert f"{len(apart)} of {len(verdicts)} cells differ between sittings" in text
    well = {
        row["client"].rpartition("/")[2]
        for row in common
        if not any(row[fault].startswith(("unsafe", "hangs")) for fault in faults)
    }
    assert well == {"native", "pymemcache", "aiomcache"}
    assert "`native`, pymemcache and aiomcache have neither an unsafe cell nor one" in text


def test_resiliences_reasons_name_its_clients() -> None:
    clients = {row["client"] for row in rows("resilience-2026-11")}
    for row in rows("resilience-2026-11-reasons"):
        named = re.findall(r"[a-z]+/[a-z_-]+", row["client"])
        assert named, row
        assert set(named) <= clients


def test_the_server_page_has_the_counts_of_memcacheds_tests() -> None:
    test = "test of memcached 1.6.45"
    table = rows("memcached-tests")
    several = [int(count) for row in table for count in re.findall(r"\((\d+) files\)", row[test])]
    results = [row["result"] for row in table]
    text = page("server")
    assert (
        f"Of {len(table) - len(several) + sum(several)} files, {results.count('pass')} pass" in text
    )
    words = {6: "six", 9: "nine"}
    tls = words[sum(result.startswith("pass with TLS") for result in results)]
    failed = [row[test] for row in table if row["result"] == "fail"]
    assert f"{tls} more pass with TLS, {words[len(failed)]} fail" in text
    _, _, listed = text.partition("The failures: ")
    assert all(f"`{name}`" in listed for name in failed)


def test_findings_about_clients_cite_counts_of_the_table() -> None:
    counted = {(row["client"], row["kind"]): row for row in rows("why-2026-11")}
    findings = rows("why-findings-2026-11")
    unknown = [row for row in findings if not row["known"]]
    assert len({(row["place"], row["symptom"]) for row in unknown}) >= 10
    for row in findings:
        found = counted[row["client"], row["kind"]]
        assert row["version"] == found["version"]
        for cited in row["counts"].split("; "):
            figure, value = cited.split()
            digits = len(value.partition(".")[2])
            # A time depends on the machine's load.
            assert not figure.endswith("_us")
            assert abs(float(found[figure]) - float(value)) <= 0.51 * 10**-digits, row
        assert ": " in row["place"]
        assert row["source"].startswith("https://")
        assert row["proposal"]
