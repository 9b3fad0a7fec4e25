"""`cachemark capacity`: how many servers a trace, or a running memcached, needs."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from cachemark.cli import completers
from cachemark.cli.trace import TraceReading, show_document
from cachemark.endpoints.servers.control_connection import Control
from cachemark.host.process import binary_path
from cachemark.host.temporary import temporary_folder
from cachemark.model.address import parse_host_port
from cachemark.model.errors import UsageError
from cachemark.model.experiment_file import load
from cachemark.model.miss_ratio import CheckedTrace
from cachemark.model.trace_statistics import ShownTrace, ToldTrace, TraceOrigin
from cachemark.model.units import MIB
from cachemark.report.console import plain_console
from cachemark.report.json_text import json_text
from cachemark.report.measured_rates import measured_rates
from cachemark.runs.storage.store import open_run
from cachemark.runs.tapes import TapeCache
from cachemark.runs.trace_files import predicted_trace, shown_trace, told_trace, written_trace

# The page's curve goes from this fraction of the fleet's memory to the same multiple of it.
_AROUND = 8
_REMEDY = "docs/size-a-fleet.md describes the file of the servers"


class _FleetFigures(msgspec.Struct):
    fleet_bytes: int | None
    origin: TraceOrigin


class TraceCapacity(msgspec.Struct, frozen=True, kw_only=True):
    """All figures of the verb. Only a page has the traffic and the curve."""

    fleet: msgspec.Raw
    shown: ShownTrace | None = None
    predicted: CheckedTrace | None = None


@dataclass(frozen=True)
class MeasuredRun:
    """A run that measured the rates of servers."""

    rate_of: Annotated[
        str | None,
        Parameter(
            completer=completers.runs,
            help="the run whose search or closed loops give the rate of a server with its number "
            "of threads: its id or folder",
        ),
    ] = None
    runs: Annotated[Path, Parameter(help="folder of all runs")] = Path("results")

    def words(self, folder: Path) -> list[str]:
        """The engine's words for its rates, which are in a file of `folder`."""
        if self.rate_of is None:
            return []
        run = open_run(self.rate_of, self.runs)
        found = measured_rates(run.id, run.header.experiment, run.outcomes())
        (file := folder / "rates.json").write_text(json_text(found))
        return [f"--measured={file}"]


def capacity(
    source: Annotated[
        str, Parameter(help="a trace, tape or experiment; or a running memcached, as HOST:PORT")
    ],
    *,
    servers: Annotated[
        Path | None,
        Parameter(
            help="the kinds of servers, a TOML file; without it, one like the running memcached"
        ),
    ] = None,
    duration: Annotated[
        str | None, Parameter(help="how long to record a running memcached, such as 60s")
    ] = None,
    rates: Annotated[MeasuredRun | None, Parameter(name="*")] = None,
    keep: Annotated[Path | None, Parameter(help="keep the recording in this file")] = None,
    warm_up: Annotated[
        float, Parameter(help="the first part of the trace, which fills the caches: not counted")
    ] = 0.2,
    reading: Annotated[TraceReading | None, Parameter(name="*")] = None,
    out: Annotated[
        Path | None, Parameter(help="a page (.html) with the traffic and the curve of its misses")
    ] = None,
    json: Annotated[bool, Parameter(help="print the figures as JSON")] = False,
) -> int:
    """Count the servers that a trace needs: by memory, rate, network, and with one server lost.

    It also plays the trace through the fleet, with simulated servers and the clients' own ring, and
    loses one of them. SERVERS has the limits of a server and the goal: docs/size-a-fleet.md. With
    HOST:PORT, this is `record`, `trace show`, `predict` and `capacity` in one. `plan` is the same.
    """
    with temporary_folder() as folder:
        path, name = Path(source), Path(source).name
        if _is_running(source):
            # A title is the name of the file.
            path, name = folder / source, source
            _record(source, duration, path, keep)
            servers = servers or _like(source, folder)
        elif duration or keep:
            raise UsageError("--duration, --keep: for a running memcached", "leave them out")
        elif servers is None:
            raise UsageError("no --servers", "docs/size-a-fleet.md describes this file")
        if path.suffix == ".toml":
            path = _tape_of(path, folder)
        words = [*(reading or TraceReading()).words]
        known = [f"--warm-up={warm_up!r}", *(rates or MeasuredRun()).words(folder)]
        options = [*words, *known, f"--servers={servers}"]
        fleet = told_trace(["trace", "fleet", *options, "--", str(path)], _REMEDY)
        told = TraceCapacity(fleet=fleet.figures)
        if out is not None:
            told = _with_traffic(told, words, known[0], path)
    return _show(fleet, told, name, out, json=json)


def _is_running(source: str) -> bool:
    try:
        return not Path(source).exists() and bool(parse_host_port(source))
    except ValueError as error:
        text = f"{source}: no such file, nor HOST:PORT"
        raise UsageError(text, "name a trace or a memcached") from error


def _like(server: str, folder: Path) -> Path:
    """A file of one server with the memory and the threads of a running one."""
    with closing(Control(server)) as control:
        stats = control.stats()
    memory, threads = stats.number("limit_maxbytes"), stats.number("threads")
    if not memory or not threads:
        raise UsageError(f"{server}: it does not tell its memory and threads", "add --servers")
    file = folder / "like-it.toml"
    lines = ["[[server]]", 'name = "its size"', f'memory = "{memory}"', f"threads = {threads}"]
    file.write_text("\n".join([*lines, "number = 1", ""]))
    return file


def _tape_of(experiment: Path, folder: Path) -> Path:
    """The tape of an experiment's only workload and load, as a file of its name in `folder`."""
    found = load(experiment)
    if len(found.workloads) != 1 or len(found.loads) != 1:
        count = f"{len(found.workloads)} workloads and {len(found.loads)} loads"
        raise UsageError(f"{experiment}: it has {count}", "leave one of each")
    tapes = TapeCache(binary_path(), folder)
    tape = tapes.get(found.workloads[0], found.loads[0], found.timing, found.seed)
    return tape.path.rename(folder / experiment.name)


def _record(server: str, duration: str | None, path: Path, keep: Path | None) -> None:
    """Record a running memcached at `path`, which is a link to the file to keep."""
    if duration is None:
        raise UsageError(f"{server}: no time to record was named", "add --duration 60s")
    tell = plain_console(stderr=True, soft_wrap=True)
    tell.print(f"recording {server} for {duration}", markup=False, highlight=False)
    written_trace(["record", f"--duration={duration}", f"--out={keep or path}", "--", server])
    if keep is not None:
        path.symlink_to(keep.resolve())


def _with_traffic(told: TraceCapacity, words: list[str], warm_up: str, path: Path) -> TraceCapacity:
    """Add the results of `trace show` and `predict`, which do not read tapes."""
    figures = msgspec.json.decode(told.fleet, type=_FleetFigures)
    if figures.origin.source == "tape":
        return told
    shown = shown_trace(["trace", "show", *words, "--", str(path)])
    middle = max((figures.fleet_bytes or round(shown.statistics.keys.bytes.value)) // MIB, 1)
    memory = f"--memory={max(middle // _AROUND, 1)}m..{middle * _AROUND}m"
    predicted = predicted_trace(["trace", "predict", *words, warm_up, memory, "--", str(path)])
    checked = CheckedTrace(predicted=predicted, checks=[])
    return msgspec.structs.replace(told, shown=shown, predicted=checked)


def _show(fleet: ToldTrace, told: TraceCapacity, name: str, out: Path | None, *, json: bool) -> int:
    # Late, as plots take a while to load.
    from cachemark.report.trace import prediction, statistics  # noqa: PLC0415
    from cachemark.report.trace.document import joined  # noqa: PLC0415
    from cachemark.report.trace.told import document  # noqa: PLC0415

    made = document(fleet)
    if out is not None:
        others = [prediction.document(told.predicted)] if told.predicted else []
        others += [statistics.document(told.shown, name)] if told.shown else []
        made = joined(made, others)
    return show_document(made, told, out, json=json)
