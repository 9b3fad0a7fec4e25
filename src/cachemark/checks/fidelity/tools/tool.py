"""Types and functions that the adapters of other load generators share."""

import math
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from cachemark.checks.fidelity.cases import CaseLoad
from cachemark.model.errors import TrialError

# The length of keys. memtier_benchmark gets a prefix, so that its longest key has it.
KEY_BYTES = 32


class ToolJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job for a tool: the program's path, the server's port, a folder, the load.

    `depth` is the number of outstanding operations on a connection. `closed_s` is the duration of
    closed loops: most tools take a time, not a number of operations. `saves_cpu` asks for little
    CPU time, even if the times are less exact.
    """

    program: str
    port: int
    folder: Path
    load: CaseLoad
    depth: int = 1
    closed_s: int = 3
    saves_cpu: bool = False

    @property
    def seconds(self) -> int:
        """The duration in whole seconds."""
        return self.closed_s if self.load.closed else math.ceil(self.load.duration_ms / 1e3)

    @property
    def rate(self) -> int:
        """Operations per second of an open loop; 0 in a closed one."""
        return round(self.load.rate or 0)

    @property
    def server(self) -> str:
        """The server as host:port."""
        return f"127.0.0.1:{self.port}"


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """The response times that a tool reports, by percentile, in ms."""

    percentiles_ms: dict[float, float]


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """An adapter: how to run the tool, and how to read its output.

    `tried` is the version that the adapter was tested with; empty: the adapter follows the tool's
    documentation and source, and was never run. `package` is Debian's package, if there is one.
    `schedules` are those that the tool supports. `silent` is why the tool reports no times, if so.
    `verifies` says what it checks of a reply. `fill` is the command that stores the keys that
    `command` reads; None: `command` does it itself. `pipelines` says whether it can have more than
    one outstanding operation on a connection.
    """

    name: str
    programs: tuple[str, ...]
    home: str
    tried: str = ""
    package: str = ""
    schedules: tuple[str, ...] = ("closed",)
    silent: str = ""
    note: str = ""
    verifies: str
    pipelines: bool = False
    fill: Callable[[ToolJob], list[str]] | None = None
    command: Callable[[ToolJob], list[str]] = lambda _job: []
    read: Callable[[ToolJob, str], ToolResult] = lambda _job, _out: ToolResult(percentiles_ms={})

    def program(self) -> str | None:
        """The path of the program; None if it is not on PATH."""
        return next(filter(None, map(shutil.which, self.programs)), None)


def with_settings(job: ToolJob, template: Path, **others: object) -> list[str]:
    """Write a settings file, filled in from a job and `others`; returns the command line."""
    text = template.read_text(encoding="utf-8")
    path = job.folder / "settings.toml"
    filled = text.format(job=job, load=job.load, key_bytes=KEY_BYTES, **others)
    path.write_text(filled, encoding="utf-8")
    return [job.program, str(path)]


def unreadable(tool: str, output: str) -> TrialError:
    """The error for an output without times."""
    last = next((line for line in reversed(output.splitlines()) if line.strip()), "nothing")
    return TrialError(f"{tool}: no times in its output, which ends with {last[:120]!r}")


def percent(digits: str) -> float:
    """The percentile in a name of digits only: `99`, `999` for 99.9, `100`."""
    return (
        float(digits) if len(digits) < 3 or digits == "100" else float(f"{digits[:2]}.{digits[2:]}")
    )
