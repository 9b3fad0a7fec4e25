"""What a file of JMH's results has of an interrupted run."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cachemark.endpoints.clients import parse_client, registry
from cachemark.host import process
from cachemark.model.errors import UsageError
from cachemark.runs import jmh
from cachemark.runs.jmh_resume import kept_measurements
from tests.builders.jmh_report import resumable

CLIENTS = registry(process.binary_path())


def test_what_an_interrupted_run_has_is_kept() -> None:
    spec, settings = parse_client("java/spymemcached", CLIENTS), jmh.ORIGINAL
    planned = jmh.benchmarks(spec, settings)
    document = msgspec.json.encode([resumable(spec, one, settings) for one in planned[:3]])
    kept = kept_measurements(document, "x.json", [spec], settings)
    assert list(kept) == [(spec.text, one) for one in planned[:3]]
    assert [each.results[0].params["operation"] for each in kept.values()] == [
        one.operation for one in planned[:3]
    ]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"threads": 16}, "other settings"),
        ({"warmupIterations": 3}, "other settings"),
        ({"measurementTime": "10 s"}, "other settings"),
    ],
)
def test_results_of_other_settings_are_not_mixed_in(changed: dict[str, Any], told: str) -> None:
    spec, settings = parse_client("java/spymemcached", CLIENTS), jmh.ORIGINAL
    first = jmh.benchmarks(spec, settings)[0]
    document = msgspec.json.encode([resumable(spec, first, settings, **changed)])
    with pytest.raises(UsageError, match=told) as found:
        kept_measurements(document, "x.json", [spec], settings)
    assert "x.json" in str(found.value)


def test_a_file_that_is_no_json_of_jmh_is_named() -> None:
    spec = parse_client("java/spymemcached", CLIENTS)
    with pytest.raises(UsageError, match=r"x\.json: JMH's JSON cannot be read"):
        kept_measurements(b"no", "x.json", [spec], jmh.ORIGINAL)
