"""Trace files: the engine records, converts and describes them."""

from __future__ import annotations

import signal
import subprocess

import msgspec

from cachemark.host.process import binary_path
from cachemark.model.errors import UsageError, engine_error_text
from cachemark.model.trace_statistics import ShownTrace, TraceOrigin, TraceSummary

_REMEDY = (
    "docs/trace-format.md has the formats, docs/replay-a-trace.md the way from a server to a run"
)


class WrittenTrace(msgspec.Struct, frozen=True, kw_only=True):
    """A trace that was written. `lines` were read, `bytes` is the size of the file."""

    format: str
    origin: TraceOrigin
    lines: int
    records: int
    bytes: int
    summary: TraceSummary


def written_trace(arguments: list[str]) -> WrittenTrace:
    """Let the engine write a trace: `trace convert …` or `record …`. Raises UsageError."""
    return msgspec.json.decode(_printed(arguments), type=WrittenTrace)


def shown_trace(arguments: list[str]) -> ShownTrace:
    """Let the engine tell what is in a trace: `trace show …`. Raises UsageError."""
    return msgspec.json.decode(_printed(arguments), type=ShownTrace)


def _printed(arguments: list[str]) -> str:
    """What the engine printed. Raises UsageError.

    Ctrl-C or SIGTERM ends a recording, whose file is whole all the same.
    """
    # A group of its own: a terminal's Ctrl-C would reach the engine too, beside the signal below.
    with subprocess.Popen(
        [binary_path(), *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0,
    ) as engine:  # fmt: skip
        try:
            stdout, stderr = engine.communicate()
        except KeyboardInterrupt:
            engine.send_signal(signal.SIGTERM)
            stdout, stderr = engine.communicate()
            if arguments[0] != "record":
                raise
        finally:
            if engine.poll() is None:
                engine.kill()
    if engine.returncode:
        raise UsageError(
            engine_error_text(stderr) or f"the engine ended: {engine.returncode}", _REMEDY
        )
    return stdout
