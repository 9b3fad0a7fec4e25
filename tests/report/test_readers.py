"""Exports, read by the programs that they are for."""

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cachemark.model.histogram import bucket_highest_ns
from cachemark.report.exports.hgrm import table
from cachemark.report.exports.jmh_results import results
from cachemark.report.exports.registry import EXPORTS
from cachemark.report.exports.ruby_bench import row
from cachemark.report.series import ExportedRun, response_histogram
from tests.builders import exported_run
from tests.report.reader_programs import GOOGLE_COMPARE, benchstat, java, need

__all__ = ["benchstat", "java"]


@pytest.fixture(scope="module")
def run() -> ExportedRun:
    return exported_run.run()


def said(command: list[str], text: str = "") -> str:
    """The output of a program that reads a text; it must accept it."""
    ended = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def written(form: str, run: ExportedRun, folder: Path) -> list[Path]:
    """The files of an export."""
    paths: list[Path] = []
    for name, text in EXPORTS[form](run).items():
        paths.append(folder / name)
        paths[-1].write_text(text, encoding="utf-8")
    return paths


@pytest.mark.slow("compiles Java, and starts JVMs")
def test_java_reads_the_interval_log(java: list[str], run: ExportedRun, tmp_path: Path) -> None:
    """Each interval comes back whole, and its percentile table is ours to the letter."""
    (log,) = written("hlog", run, tmp_path)
    read: dict[tuple[str, int], str] = {}
    for block in said([*java, "hlog", str(log)]).split("end\n")[:-1]:
        head, _, found = block.partition("\n")
        tag, start_ms, end_ms, count = head.split()
        read[tag, int(start_ms)] = found
        assert int(end_ms) - int(start_ms) >= 1000
        assert f"Total count    = {int(count):12d}" in found
    ours = {
        table(times)
        for series in run.series
        for part in series.parts
        for trial in part.trials
        if (times := response_histogram(trial))
    }
    assert len(read) == sum(len(s.parts) * len(s.windows) for s in run.series)
    assert set(read.values()) == ours


@pytest.mark.slow("compiles Java, and starts JVMs")
def test_jmh_prints_the_same_sample(java: list[str], run: ExportedRun) -> None:
    """But for the error, which is over trials, percentiles of few, and the bin that JMH drops."""
    sample = next(result for result in results(run) if result.mode == "sample")
    assert sample.merged
    counts = sample.merged.counts
    lines = [f"{bucket_highest_ns(int(i)) / 1e3} {counts[i]}" for i in counts.nonzero()[0]]
    theirs = said([*java, "jmh"], "\n".join(lines)).splitlines()
    (text,) = EXPORTS["jmh"](run).values()
    block = text[text.index("  N = ") :]
    ours = block[: block.index("\n# ")].rstrip().splitlines()
    assert ours[0] == theirs[0]
    kept = [line for line in theirs[2:] if line in ours]
    lost = [line for line in theirs[2:] if line not in ours]
    assert kept == [line for line in ours[2:] if line in theirs]
    assert all("p(99.9" in line for line in lost), lost
    (added,) = [line for line in ours[2:] if line not in theirs]
    assert added.startswith("    [750.000, 800.000) = ")


@pytest.mark.slow("starts a JVM for each result")
def test_jmh_prints_the_same_throughput(java: list[str], run: ExportedRun) -> None:
    (text,) = EXPORTS["jmh"](run).values()
    throughput = [result for result in results(run) if result.mode == "thrpt"]
    for result in throughput:
        assert said([*java, "jmh-rates", *map(str, result.rates)]) in text


@pytest.mark.slow("builds benchstat")
def test_benchstat_reads_every_trial(benchstat: Path, run: ExportedRun, tmp_path: Path) -> None:
    (path,) = written("go-bench", run, tmp_path)
    command = [str(benchstat), "-format", "csv", "-table", "/load,/op", "-row", "/client"]
    ended = subprocess.run([*command, str(path)], capture_output=True, text=True, check=True)
    assert "not parsed" not in ended.stderr
    assert "unknown" not in ended.stderr
    rows = [line for line in csv.reader(ended.stdout.splitlines()) if line]
    clients = {row[0] for row in rows}
    assert {"python:fast", "python:mute", "native?a=b%20c"} <= clients
    medians = {row[1] for row in rows if row[0] == "native?a=b%20c" and len(row) > 1}
    series = next(s for s in run.series if s.cell.client == "native?a=b c")
    first = sorted(600 / (window.elapsed_ns / 1e9) for window in series.windows)
    median = (first[1] + first[2]) / 2
    assert any(abs(float(text) / median - 1) < 1e-4 for text in medians)
    units = {text for row in rows for text in row}
    assert {"sec/op", "ops/s", "p99-sec", "client-cpu-sec/op"} <= units


@pytest.mark.slow("builds benchstat")
def test_benchstat_compares_two_runs(benchstat: Path, run: ExportedRun, tmp_path: Path) -> None:
    (path,) = written("go-bench", run, tmp_path)
    other = path.with_name("after.txt")
    other.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    compared = said([str(benchstat), str(path), str(other)])
    assert "vs base" in compared
    assert "~ (p=1.000" in compared


def test_google_benchmark_compares_clients(run: ExportedRun, tmp_path: Path) -> None:
    if not GOOGLE_COMPARE.exists():
        pytest.skip("libbenchmark-tools is not on this machine")
    (path,) = written("google-benchmark", run, tmp_path)
    dump = tmp_path / "compared.json"
    command = [sys.executable, str(GOOGLE_COMPARE), "--no-color", "-d", str(dump)]
    # It gives nothing for the CPU of a client that does not tell it, so it is shown those that do.
    filters = ["filters", str(path), "/one/.*fast", "/one/.*native.*"]
    text = said([*command, *filters])
    assert "OVERALL_GEOMEAN" in text
    (compared, *_) = json.loads(dump.read_text(encoding="utf-8"))
    assert len(compared["measurements"]) == 3  # the trial that is INVALID has no partner
    assert compared["run_type"] == "iteration"


def test_hyperfine_writes_the_same_fields(run: ExportedRun, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs.json"
    said([need("hyperfine"), "-N", "--style", "none", "--runs", "2", "-P", "n", "0", "1",
          "--export-json", str(theirs), "true {n}"])  # fmt: skip
    (ours,) = written("hyperfine", run, tmp_path)
    wanted, made = _result(theirs), _result(ours)
    assert set(made) == set(wanted)
    for field, value in wanted.items():
        assert type(made[field]) is type(value), field


def _result(path: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["results"][0]
    return result


def test_ruby_prints_the_same_row(run: ExportedRun) -> None:
    ruby = need("ruby")
    (text,) = EXPORTS["ruby-bench"](run).values()
    assert row(1.25, 0.5, 1234.5) + "\n" == " " + said(
        [ruby, "-rbenchmark", "-e", "print Benchmark::Tms.new(1.25, 0.5, 0, 0, 1234.5).format"]
    )
    caption = said([ruby, "-rbenchmark", "-e", "print Benchmark::CAPTION"])
    assert caption.rstrip("\n") in text
