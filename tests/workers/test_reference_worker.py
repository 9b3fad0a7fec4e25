"""The reference worker: short enough to be a template, and right."""

import random
from pathlib import Path

from hdrh.histogram import HdrHistogram

ROOT = Path(__file__).resolve().parents[2]
WORKER = ROOT / "workers" / "reference" / "worker.py"


def test_it_is_at_most_250_lines() -> None:
    assert len(WORKER.read_text().splitlines()) <= 250


def test_its_histogram_is_read_by_others() -> None:
    source = WORKER.read_text().split("\nclass Worker:")[0]
    namespace: dict[str, object] = {}
    exec(compile(source, str(WORKER), "exec"), namespace)  # its main loop reads stdin: leave it out
    draw = random.Random(1)
    values = [draw.randint(1, 10 ** draw.randint(1, 10)) for _ in range(3000)] + [1, 2047, 2048]
    decoded = HdrHistogram.decode(namespace["histogram"](values))  # pyright: ignore
    expected = HdrHistogram(1, 100_000_000_000, 3)
    for value in values:
        expected.record_value(value)
    assert decoded.total_count == len(values)
    for percent in (0, 50, 90, 99, 99.9, 100):
        assert decoded.get_value_at_percentile(percent) == expected.get_value_at_percentile(percent)
