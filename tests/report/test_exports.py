"""Exports: golden files where the form is text, schemas and figures where it is JSON."""

import json
import math
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from cachemark.model import histogram
from cachemark.model.experiment import Workload
from cachemark.model.histogram import bucket_highest_ns
from cachemark.model.outcome import Outcome
from cachemark.model.protocol import Operation
from cachemark.model.protocol_results import Sections
from cachemark.report.exports.jmh_results import percentile, results
from cachemark.report.exports.registry import EXPORTS
from cachemark.report.formats import format_names
from cachemark.report.originals.quickcached import ops_per_txn
from cachemark.report.series import (
    ExportedRun,
    all_operations,
    build_exported_run,
    response_histogram,
)
from tests.builders import exported_run
from tests.builders.histograms import from_values
from tests.builders.outcomes import at, header
from tests.conftest import ROOT
from tests.golden import assert_golden

GOLDEN = Path(__file__).parent / "golden" / "exports"
SCHEMAS = Path(__file__).parent / "schemas"
TEXTS = (
    "jmh", "ruby-bench", "quickcached", "emcache", "constcache", "go-bench", "openmetrics", "hgrm",
)  # fmt: skip
DOCUMENTS = {
    "jmh-json": ["jmh-result.json"],
    "google-benchmark": ["benchmark.json"],
    "hyperfine": ["hyperfine.json"],
    "bencher": ["bencher.json"],
    "github-action": ["bigger-is-better.json", "smaller-is-better.json"],
}


@pytest.fixture(scope="module")
def run() -> ExportedRun:
    return exported_run.run()


def document(form: str, run: ExportedRun, number: int = 0) -> Any:
    return json.loads(EXPORTS[form](run)[DOCUMENTS[form][number]])


def test_every_form_is_known_by_its_name() -> None:
    assert set(TEXTS) | set(DOCUMENTS) | {"hlog"} == set(EXPORTS)
    assert set(EXPORTS) < set(format_names())


def test_every_form_is_described() -> None:
    text = (ROOT / "docs" / "exports.md").read_text(encoding="utf-8")
    assert [form for form in format_names() if f"`{form}`" not in text] == []


@pytest.mark.parametrize("form", TEXTS)
def test_a_text_is_as_it_was(form: str, run: ExportedRun) -> None:
    long = form in ("hgrm", "openmetrics")  # all series are made alike: one stands for them
    files = EXPORTS[form](msgspec.structs.replace(run, series=run.series[:1]) if long else run)
    for name, text in files.items():
        assert_golden(form, text, GOLDEN / name)


@pytest.mark.parametrize("form", DOCUMENTS)
def test_a_document_follows_its_schema(form: str, run: ExportedRun) -> None:
    schema = json.loads((SCHEMAS / f"{form}.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    for number in range(len(DOCUMENTS[form])):
        found = document(form, run, number)
        assert found
        jsonschema.validate(found, schema)


@pytest.mark.parametrize("form", EXPORTS)
def test_what_does_not_count_is_in_no_export(form: str, run: ExportedRun) -> None:
    """The missing client and the cell that is INVALID as a whole may be named, without a figure."""
    without = [
        outcome
        for outcome in exported_run.outcomes()
        if outcome.verdict == "VALID" and outcome.state == "measured"
    ]
    valid_only = build_exported_run(header(exported_run.made()), without)
    bare = msgspec.structs.replace(run, series=valid_only.series, left_out=run.left_out)
    # Only the number of trials that do not count tells the two apart.
    hidden = ("cachemark_trials", '"extra"')

    def shown(of: ExportedRun) -> list[str]:
        lines = [line for text in EXPORTS[form](of).values() for line in text.splitlines()]
        return [line for line in lines if not any(word in line for word in hidden)]

    assert shown(run) == shown(bare)


@pytest.mark.parametrize("form", EXPORTS)
def test_a_run_without_a_figure_gives_none(form: str) -> None:
    gone = [outcome for outcome in exported_run.outcomes() if outcome.state == "unsupported"]
    for text in EXPORTS[form](build_exported_run(header(exported_run.made()), gone)).values():
        assert "nan" not in text.lower().replace("nanos", "")


def one_trial() -> list[Outcome]:
    return exported_run.outcomes()[:1]


@pytest.mark.parametrize("form", EXPORTS)
def test_one_trial_has_no_interval(form: str) -> None:
    single = build_exported_run(header(exported_run.made()), one_trial())
    files = EXPORTS[form](single)
    assert files
    text = "".join(files.values())
    for word in ("lower_value", '"range"', "±"):
        assert word not in text
    if form == "jmh-json":
        metric = json.loads(text)[0]["primaryMetric"]
        assert metric["scoreError"] == "NaN"
        assert metric["scoreConfidence"] == ["NaN", "NaN"]


def test_jmh_has_a_throughput_and_samples_of_each_kind(run: ExportedRun) -> None:
    found = document("jmh-json", run)
    throughput = [entry for entry in found if entry["mode"] == "thrpt"]
    samples = [entry for entry in found if entry["mode"] == "sample"]
    assert len(throughput) == len(run.series)
    of = {entry["params"]["operation"] for entry in samples}
    assert of == {"sequence", "all", "get", "set"}
    first = throughput[0]["primaryMetric"]
    rates = [rate for (rate,) in first["rawData"]]
    assert len(rates) == throughput[0]["forks"] == 3
    assert first["score"] == pytest.approx(sum(rates) / 3)
    low, high = first["scoreConfidence"]
    # Student's t, two degrees of freedom, 99.9 %: 31.599.
    spread = math.sqrt(sum((rate - first["score"]) ** 2 for rate in rates) / 2)
    assert (high - low) / 2 == pytest.approx(31.599 * spread / math.sqrt(3), rel=1e-4)
    # Passes of the sequence first, then all operations together.
    for sample, each in zip(samples, (190, 600), strict=False):
        histograms = sample["primaryMetric"]["rawDataHistogram"]
        counted = sum(count for fork in histograms for step in fork for _, count in step)
        assert counted == 3 * each


def test_a_percentile_of_few_is_not_shown(run: ExportedRun) -> None:
    sample = next(result for result in results(run) if result.mode == "sample")
    assert percentile(sample, 99.0) is not None
    assert percentile(sample, 99.99) is None
    assert percentile(sample, 100.0) is not None
    entry = next(e for e in document("jmh-json", run) if e["mode"] == "sample")
    assert entry["primaryMetric"]["scorePercentiles"]["99.99"] == "NaN"


def test_the_interval_log_is_read_again(run: ExportedRun, tmp_path: Path) -> None:
    (text,) = EXPORTS["hlog"](run).values()
    path = tmp_path / "response.hlog"
    path.write_text(text, encoding="utf-8")
    reader = HistogramLogReader(str(path), HdrHistogram(1, 100_000_000_000, 3))
    total = 0
    starts: list[float] = []
    while (interval := reader.get_next_interval_histogram()) is not None:
        total += interval.get_total_count()
        starts.append(interval.get_start_time_stamp())
    expected = [
        found
        for s in run.series
        for p in s.parts
        if (found := response_histogram(all_operations(p)))
    ]
    assert total == sum(found.count for found in expected)
    assert starts == sorted(starts)
    assert reader.get_start_time_sec() == 1767322805.25
    tags = {line.split(",")[0] for line in text.splitlines() if line.startswith("Tag=")}
    assert len(tags) == len(run.series) * 3


def test_sections_of_a_window_are_intervals_that_fill_it() -> None:
    blob = histogram.encode(from_values([1_000_000] * 3))
    parts = Sections(length_ns=250_000_000, ok=[3, 0, 3], response=[blob, None, blob])
    (old,) = one_trial()[:1]
    assert old.measure is not None
    measure = msgspec.structs.replace(old.measure, elapsed_ns=800_000_000, sections=parts)
    kept = [msgspec.structs.replace(old, measure=measure)]
    (text,) = EXPORTS["hlog"](build_exported_run(header(exported_run.made()), kept)).values()
    lines = [line.split(",") for line in text.splitlines() if "_sections," in line]
    starts = [float(line[1]) for line in lines]
    assert starts[1] - starts[0] == pytest.approx(0.5)
    assert [line[2] for line in lines] == ["0.250", "0.300"]
    assert [histogram.decode(line[4]).count for line in lines] == [3, 3]


def test_a_window_of_unknown_start_is_not_in_the_log(run: ExportedRun) -> None:
    old = [msgspec.structs.replace(o, measure_started_at="") for o in exported_run.outcomes()]
    (text,) = EXPORTS["hlog"](build_exported_run(header(exported_run.made()), old)).values()
    assert "Tag=" not in text
    assert f"#[left out: {sum(s.summary.valid for s in run.series)} trials" in text


def test_openmetrics_is_read_again(run: ExportedRun) -> None:
    (text,) = EXPORTS["openmetrics"](run).values()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    series = run.series[0]
    cell = {f: getattr(series.cell, f) for f in ("client", "server", "workload", "load")}

    def value(name: str, sample: str, **labels: str) -> float:
        wanted = {**cell, **labels}
        (found,) = [
            s.value for s in families[name].samples if s.name == sample and s.labels == wanted
        ]
        return float(found)

    assert value(
        "cachemark_operations", "cachemark_operations_total", operation="get", result="ok"
    ) == 1200  # fmt: skip
    seconds = value("cachemark_measured_seconds", "cachemark_measured_seconds_total")
    assert seconds == pytest.approx(sum(w.elapsed_ns for w in series.windows) / 1e9)
    gets = response_histogram(all_operations(series.parts[1]))
    assert gets
    name = "cachemark_response_seconds"
    assert value(name, f"{name}_count", operation="get") == gets.count
    for sample in families[name].samples:
        if sample.name == f"{name}_bucket" and sample.labels["operation"] == "get":
            labels = {k: v for k, v in sample.labels.items() if k in cell}
            bound = sample.labels["le"]
            if labels == cell and bound != "+Inf":
                upto = sum(
                    int(gets.counts[i])
                    for i in gets.counts.nonzero()[0]
                    if bucket_highest_ns(int(i)) <= round(float(bound) * 1e9)
                )
                assert sample.value == upto


@pytest.mark.parametrize(
    ("workload", "operations"),
    [
        (Workload(name="a", mix={"get": 9, "set": 1}), 1),
        (Workload(name="a", mix={"set": 1, "get": 1, "delete": 1}, order="phases"), 3),
        (Workload(name="a", mix={"set": 2, "get": 1}, order="phases"), 1),
        (Workload(name="a", sequence=["set@0", "get@0", "get"]), 3),
    ],
)
def test_what_a_transaction_is(workload: Workload, operations: int) -> None:
    assert ops_per_txn(workload) == operations


def test_a_fill_is_shown_as_emcache_did() -> None:
    """Two servers, four threads, batches of 100: the original's three figures, and the better."""
    filled = [
        _fill(server, block, keys=keys, held=bytes_)
        for server, keys, bytes_ in (("memcached", 560_000, 2**29), ("emcache", 280_000, 2**28))
        for block in range(2)
    ]
    (text,) = EXPORTS["emcache"](build_exported_run(header(exported_run.made()), filled)).values()
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert rows == [
        "| Task | memcached/python/fast | emcache/python/fast |",
        "| Fill cache to 80% | **280k/s - 168mb/s** | 140k/s - 84mb/s |",
        "| Server | User stored size | bytes stat | process resident size |",
        "| memcached | 320.4mb | 512mb (63% eff.) | 1024mb (31% eff.) |",
        "| emcache | 160.2mb | 256mb (63% eff.) | – |",
    ]


def _fill(server: str, block: int, *, keys: int, held: int) -> Outcome:
    """A fill of two seconds; the RSS of only one of the two servers can be had."""
    base = exported_run.trial("python/fast", exported_run.FOUR, block)
    window = base.measure
    assert window
    batch = Operation(
        attempts=keys // 100, ok=keys // 100, keys=keys, key_bytes=10 * keys, value_bytes=590 * keys
    )
    use = base.server_use
    assert use
    return msgspec.structs.replace(
        at(base, server=server),
        workload=Workload(name="fill", mix={"mset_noreply": 1}, fill_percent=80.0),
        measure=msgspec.structs.replace(
            window, elapsed_ns=2 * 10**9, operations={"mset_noreply": batch}
        ),
        stats_after={"bytes": str(held)},
        server_use=msgspec.structs.replace(use, rss_after_bytes=2**30)
        if server == "memcached"
        else None,
    )
