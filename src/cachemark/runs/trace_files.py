"""Trace files: the engine records, converts, describes, fits them, and predicts from them."""

import msgspec

from cachemark.host.engine_output import engine_output
from cachemark.model.errors import UsageError
from cachemark.model.miss_ratio import PredictedTrace
from cachemark.model.trace_statistics import ShownTrace, ToldTrace, WrittenTrace

_REMEDY = (
    "docs/trace-format.md has the formats, docs/replay-a-trace.md the way from a server to a run"
)


def written_trace(arguments: list[str]) -> WrittenTrace:
    """Let the engine write a trace: `trace convert …` or `record …`. Raises UsageError."""
    printed = engine_output(arguments, _REMEDY, stops=arguments[0] == "record")
    return msgspec.json.decode(printed, type=WrittenTrace)


def shown_trace(arguments: list[str]) -> ShownTrace:
    """Let the engine read a trace's statistics: `trace show …`. Raises UsageError."""
    return msgspec.json.decode(engine_output(arguments, _REMEDY), type=ShownTrace)


def told_trace(arguments: list[str], remedy: str = _REMEDY) -> ToldTrace:
    """Let the engine do `trace fit …` or `trace fleet …`. Raises UsageError."""
    return msgspec.json.decode(engine_output(arguments, remedy), type=ToldTrace)


def predicted_source(arguments: list[str]) -> PredictedTrace | ToldTrace:
    """Let the engine predict from a trace, or read a snapshot. Raises UsageError."""
    printed = engine_output(arguments, _REMEDY)
    return msgspec.json.decode(printed, type=PredictedTrace | ToldTrace)


def predicted_trace(arguments: list[str]) -> PredictedTrace:
    """The same of a trace only. Raises UsageError."""
    predicted = predicted_source(arguments)
    if isinstance(predicted, ToldTrace):
        text = f"{arguments[-1]}: it is a snapshot, which has no requests"
        raise UsageError(text, "record a trace, with --duration instead of --snapshot")
    return predicted
