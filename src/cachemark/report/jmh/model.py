"""The contents of a report of JMH's figures, before they are rendered."""

import msgspec

from cachemark.model.jmh import JmhSettings
from cachemark.report.model import Section

# The version of the fields of this report: a new number where one, or its meaning, changes.
SCHEMA = 1


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """A score of the mode `throughput`; `error` is half of JMH's 99.9 % interval, if it has one."""

    ops_per_s: float
    error_per_s: float | None


class Times(msgspec.Struct, frozen=True, kw_only=True):
    """The calls that the mode `latency` sampled: their number, mean and percentiles, in seconds.

    A percentile is there only if there are enough calls for it.
    """

    calls: int
    mean_s: float
    error_s: float | None
    percentiles_s: dict[str, float]


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of the old page that a benchmark repeats; `times` have all that it has."""

    benchmark: str
    rate: Rate | None
    times: Times | None


class JmhRow(msgspec.Struct, frozen=True, kw_only=True):
    """A client's benchmark in both modes, as far as they were played."""

    client: str
    wire: str
    operation: str
    value_bytes: str
    threads: int
    rate: Rate | None
    times: Times | None
    published: Published | None


class JmhReport(msgspec.Struct, frozen=True, kw_only=True):
    """Every benchmark, those without a figure, and the published tables that they repeat."""

    title: str
    server: str
    settings: JmhSettings
    jvm: list[str]
    rows: list[JmhRow]
    failures: list[str]
    notes: list[str]
    sections: list[Section]
