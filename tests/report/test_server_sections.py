"""Servers' counters: refused operations by callers, memory and evictions by size class."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from cachemark.model.server_stats import SlabClass
from cachemark.report.server_loads import server_sections
from tests.builders.outcomes import experiment, measured
from tests.builders.small_experiments import read_outcomes
from tests.cli.in_process import Inside

ALIKE = (
    *("--blocks", "1", "--set", "design=trials", "--set", "timing.warmup_ms=0"),
    *("--set", "noise=note", "--client", "native"),
)
CAS = (
    *("run", "--server", "memcached", "--mix", "cas=1", "--keys", "1", "--ops", "4000"),
    *("--threads", "1", "--threads", "4", *ALIKE),
)
FULL = (
    *("run", "--server", "memcached:memory=8", "--mix", "set=1", "--size", "100..9000"),
    *("--keys", "30000", "--ops", "20000", "--set", "workloads.prefill=0", *ALIKE),
)


def told(inside: Inside, title: str) -> dict[str, Any]:
    report = json.loads(inside("report", "--format", "json").stdout)
    return next(one for one in report["sections"] if one["title"].startswith(title))


def test_refused_swaps_have_a_column_for_each_number_of_callers(
    inside: Inside, tmp_path: Path
) -> None:
    ended = inside(*CAS)
    assert ended.returncode == 0, ended.stderr
    refused, answered = Counter[int](), Counter[int]()
    for outcome in read_outcomes(tmp_path):
        if outcome.verdict == "VALID" and outcome.measure is not None:
            swaps = outcome.measure.operations["cas"]
            refused[outcome.load.threads] += swaps.not_stored
            answered[outcome.load.threads] += swaps.ok  # answers; the refused ones are among them
    shares = {count: f"{100 * refused[count] / answered[count]:.1f} %" for count in answered}
    table = told(inside, "Refused operations by callers")
    assert table["columns"][3:] == ["operation", "1 caller", "4 callers"]
    assert table["rows"] == [["native", "memcached", "cas-1-1-keys", "cas", shares[1], shares[4]]]
    assert shares[1] == "0.0 %"
    assert shares[4] != "0.0 %"
    sentence = f"of cas the server refused 0.0 % with 1 caller and {shares[4]} with 4 callers."
    assert sentence in " ".join(ended.stdout.split())


def test_a_full_server_has_its_size_classes(inside: Inside, tmp_path: Path) -> None:
    """In the stored outcome, and in each form of the report."""
    ended = inside(*FULL)
    assert ended.returncode == 0, ended.stderr
    (outcome,) = read_outcomes(tmp_path)
    classes, stats = outcome.slab_classes, outcome.stats_after
    assert len(classes) > 10
    assert int(stats["evictions"]) > 0
    assert sum(one.evictions for one in classes) == int(stats["evictions"])
    assert sum(one.items for one in classes) == int(stats["curr_items"])
    assert 4 * 2**20 < sum(one.memory_bytes for one in classes) < 64 * 2**20
    table = told(inside, "Memory by size class")
    assert len(table["rows"]) == len([one for one in classes if one.memory_bytes])
    for form in ("table", "markdown", "html"):
        assert "Memory by size class" in inside("report", "--format", form).stdout, form


def test_servers_without_evictions_have_no_table() -> None:
    one = SlabClass(chunk_bytes=96, items=3, memory_bytes=2**20, evictions=2)
    plain = measured("a", 0, 1000)
    single = msgspec.structs.replace(plain, slab_classes=[one])
    assert server_sections(experiment(["a"]), [], [plain, single]) == []
    both = msgspec.structs.replace(
        plain, slab_classes=[one, msgspec.structs.replace(one, chunk_bytes=120)]
    )
    (table,) = server_sections(experiment(["a"]), [], [both])
    assert table.rows[0] == ["96 B", "3", "1.05 MB", "50.0 %", "2"]
    invalid = msgspec.structs.replace(both, verdict="INVALID")
    assert server_sections(experiment(["a"]), [], [invalid]) == []
