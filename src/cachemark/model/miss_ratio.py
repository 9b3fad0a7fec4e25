"""The share of reads that miss, by size of memory, as the engine's `trace predict` prints it."""

from typing import Literal

import msgspec

from cachemark.model.trace_statistics import Estimate, ToldTrace, TraceOrigin, TraceSummary

CachePolicy = Literal["memcached", "embedded", "lru", "memcached-1.6.33"]


class CurvePoint(msgspec.Struct, frozen=True, kw_only=True):
    """A size of memory, and the share of reads, and of bytes, that misses.

    The engine followed the hottest keys and `part` of the others; below `least_part` the figures
    are unknown.
    """

    memory_bytes: int
    part: float
    least_part: float
    misses: Estimate | None
    byte_misses: Estimate | None


class MissRatioCurve(msgspec.Struct, frozen=True, kw_only=True):
    """The curve of a policy: points from the smallest memory to the largest."""

    policy: CachePolicy
    points: list[CurvePoint]


class FillCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How often the rule for fills applied to the keys that were followed.

    `gets_without_size` are the `unfilled_gets` that may have hit.
    """

    fills: int
    updates: int
    filled_gets: int
    unfilled_gets: int
    gets_without_size: int
    without_size: int


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """From `reads` reads; `recorded_…` are in the trace, `least_misses` LRU's with any memory."""

    requests: int
    reads: int
    recorded_hits: int
    recorded_misses: int
    keys: float
    hot_keys: int
    fills: FillCounts
    least_misses: Estimate | None = None
    curves: list[MissRatioCurve]


class PredictedTrace(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="trace"):
    """A trace, and the prediction from it. `warm_up` is the part that is not counted."""

    format: str
    origin: TraceOrigin
    summary: TraceSummary
    duration_s: float
    speed: float
    warm_up: float
    words: ToldTrace
    prediction: Prediction


class PredictionCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A size at which the trace was played against a real server.

    `predicted` is for the trace as it was played: `speed` times as fast. `late_s` is the delay of
    the last request. `refused` writes did not fit.
    """

    server: str
    version: str
    policy: CachePolicy
    memory_bytes: int
    speed: float
    predicted: Estimate
    measured: float
    reads: int
    refused: int
    late_s: float


class CheckedTrace(msgspec.Struct, frozen=True, kw_only=True):
    """A prediction, and its distance from real servers, if --check played the trace."""

    predicted: PredictedTrace
    checks: list[PredictionCheck]
