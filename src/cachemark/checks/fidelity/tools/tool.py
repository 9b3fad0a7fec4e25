"""What the adapters of foreign tools have in common."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import msgspec

from cachemark.checks.fidelity.cases import CaseLoad
from cachemark.model.errors import TrialError

# Closed loops of tools that go by time, not by number.
_CLOSED_S = 3


class ToolJob(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool is to do: the program's path, the server's port, a folder, the load."""

    program: str
    port: int
    folder: Path
    load: CaseLoad

    @property
    def seconds(self) -> int:
        """How long it is to last, for those that count in whole seconds."""
        return _CLOSED_S if self.load.closed else math.ceil(self.load.duration_ms / 1e3)

    @property
    def rate(self) -> int:
        """Operations per second of an open loop; 0 in a closed one."""
        return round(self.load.rate or 0)

    @property
    def server(self) -> str:
        """As host:port."""
        return f"127.0.0.1:{self.port}"


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """The response times that a tool tells, by percentile, in ms."""

    percentiles_ms: dict[float, float]


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A foreign tool: how it is asked, how its output is read.

    `tried` is the version whose real output the adapter was written against; empty: it follows the
    tool's documents and source, and was never run. `schedules` are those that it has. A tool that
    is `silent` tells no times, for the reason given.
    """

    name: str
    programs: tuple[str, ...]
    home: str
    tried: str = ""
    schedules: tuple[str, ...] = ("closed",)
    silent: str = ""
    note: str = ""
    command: Callable[[ToolJob], list[str]] = lambda _job: []
    read: Callable[[ToolJob, str], ToolResult] = lambda _job, _out: ToolResult(percentiles_ms={})


def unreadable(tool: str, output: str) -> TrialError:
    """The error that an output without times amounts to."""
    last = next((line for line in reversed(output.splitlines()) if line.strip()), "nothing")
    return TrialError(f"{tool}: no times in its output, which ends with {last[:120]!r}")


def percent(digits: str) -> float:
    """The percentile that a tool names by its digits: `99`, `999` for 99.9, `100`."""
    return (
        float(digits) if len(digits) < 3 or digits == "100" else float(f"{digits[:2]}.{digits[2:]}")
    )
