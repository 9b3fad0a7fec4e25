"""JMH's figures of today, beside those that the Java original published."""

from typing import Any

import msgspec

from cachemark.model.jmh import ORIGINAL, JmhMeasurement, JmhSettings
from cachemark.report.originals import jmh_figures
from cachemark.runs import jmh

MULTIGET = {"wire": "binary", "operation": "mget"}
SET_GET = {"wire": "text", "operation": "set-get"}


def measured(client: str, *entries: dict[str, Any]) -> JmhMeasurement:
    kept, results = jmh.parse_results(msgspec.json.encode(entries))
    return JmhMeasurement(client=client, entries=kept, results=results)


def rate(score: float, params: dict[str, str], threads: int = 32) -> dict[str, Any]:
    metric = {"score": score, "scoreError": 12.5, "scoreUnit": "ops/s", "scorePercentiles": {}}
    return {
        "benchmark": "Memcached.throughput",
        "mode": "thrpt",
        "threads": threads,
        "params": params,
        "primaryMetric": metric,
    }


def sample(params: dict[str, str]) -> dict[str, Any]:
    """368 times, which are enough for a p99 but not for a p99.9."""
    percents = (0, 50, 90, 95, 99, 99.9, 99.99, 99.999, 99.9999, 100)
    metric = {
        "score": 812.0,
        "scoreError": "NaN",
        "scoreUnit": "us/op",
        "scorePercentiles": {str(float(percent)): 10.0 * percent for percent in percents},
        "rawDataHistogram": [[[[500.0, 300], [900.0, 60]], [[5000.0, 8]]]],
    }
    return rate(0, params) | {"mode": "sample", "primaryMetric": metric}


def test_a_benchmark_stands_below_the_published_one() -> None:
    came = [
        measured("java/folsom", rate(20_000, SET_GET)),
        measured("java/folsom@defaults", rate(10_000, SET_GET), rate(99_000, SET_GET, threads=2)),
    ]
    (section,) = jmh_figures.sections(came, ORIGINAL)
    assert section.title == "Set and get of four keys, 32 threads, ops/s"
    assert section.rows[:4] == [
        ["measureAsciiFolsomAsync, published", "30478.462", "1000.297", "1.00"],
        ["measureAsciiFolsomAsync, java/folsom", "20000.000", "12.500", "1.00"],
        ["measureAsciiFolsomAsync, java/folsom@defaults", "10000.000", "12.500", "0.50"],
        ["measureAsciiSpyAsync, published", "40064.223", "2883.930", "–"],
    ]
    assert len(section.rows) == 6 + 2
    assert "commit b323aba" in section.notes[0]


def test_sampled_times_are_in_seconds_as_published() -> None:
    came = [measured("java/xmemcached", sample(MULTIGET))]
    (section,) = jmh_figures.sections(came, ORIGINAL)
    assert section.title.endswith("s/op")
    assert not any("here of all" in note for note in section.notes)
    assert section.columns[:5] == ["cell", "N", "mean", "±", "p0"]
    at = next(n for n, row in enumerate(section.rows) if row[0].endswith(", java/xmemcached"))
    assert section.rows[at - 1][0] == "measureBinaryXMultiget, published"
    name, count, mean, error, *percentiles = section.rows[at]
    assert (name, count, mean, error) == (
        "measureBinaryXMultiget, java/xmemcached", "368", "0.000812", "–",
    )  # fmt: skip
    assert percentiles == [
        "0.000000", "0.000500", "0.000900", "0.000950", "0.000990", *["–"] * 4, "0.001000",
    ]  # fmt: skip


def test_a_published_percentile_is_as_on_the_page() -> None:
    """Less than half a millisecond is a power of ten there: it is not the 0.001 of other rows."""
    came = [measured("java/xmemcached", sample(MULTIGET))]
    (section,) = jmh_figures.sections(came, ORIGINAL)
    p0 = {row[0]: row[4] for row in section.rows if row[0].endswith(", published")}
    assert p0["measureAsciiFolsomMultiget, published"] == "≈ 10⁻⁴"
    assert p0["measureAsciiXMultiget, published"] == "≈ 10⁻³"
    assert p0["measureAsciiSpyMultiget, published"] == "0.001"


def test_later_figures_are_those_of_128_threads() -> None:
    came = [measured("java/folsom", rate(20_000, SET_GET, threads=128))]
    (section,) = jmh_figures.sections(came, ORIGINAL)
    assert "128 threads" in section.title


def test_other_work_is_not_compared() -> None:
    came = [measured("java/folsom", rate(20_000, SET_GET))]
    assert jmh_figures.sections(came, msgspec.structs.replace(ORIGINAL, keys=1000)) == []
    assert jmh_figures.sections(came, JmhSettings()) == []
    shorter = msgspec.structs.replace(ORIGINAL, iterations=3, warmups=3, threads=(32,))
    assert jmh_figures.sections(came, shorter)
