"""Trace files: the engine records and converts them."""

from __future__ import annotations

import signal
import subprocess

import msgspec

from cachemark.host.process import binary_path
from cachemark.model.errors import UsageError, engine_error_text

_REMEDY = (
    "docs/trace-format.md has the formats, docs/replay-a-trace.md the way from a server to a run"
)


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where the records come from. `sampled`: one key of so many is in the file."""

    source: str
    keys: str
    sampled: int = 1


class TraceSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What is in a file and what is not, by its name or reason.

    `operations` were read, before keys were sampled. `server` is how much the server's own counters
    grew meanwhile; it is empty if that is not known.
    """

    operations: dict[str, int] = {}
    left_out: dict[str, int] = {}
    other_lines: dict[str, int] = {}
    server: dict[str, int] = {}
    reconnects: int = 0


class WrittenTrace(msgspec.Struct, frozen=True, kw_only=True):
    """A trace that was written. `lines` were read, `bytes` is the size of the file."""

    format: str
    origin: Origin
    lines: int
    records: int
    bytes: int
    summary: TraceSummary


def written_trace(arguments: list[str]) -> WrittenTrace:
    """Let the engine write a trace: `trace convert …` or `record …`. Raises UsageError.

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
    return msgspec.json.decode(stdout, type=WrittenTrace)
