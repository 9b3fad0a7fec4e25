"""`cachemark drive`: load one server with the native client, and keep the results as a run."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from cyclopts import Parameter, validators

from cachemark.cli import completers
from cachemark.cli.overrides import planned_experiment, with_settings
from cachemark.cli.play import planned_shown
from cachemark.cli.run import play_and_show
from cachemark.cli.set_option import set_paths
from cachemark.cli.typed_experiment import without_none
from cachemark.cli.web import check_packages
from cachemark.cli.work_options import WorkOptions
from cachemark.endpoints.servers import kinds
from cachemark.model import suites
from cachemark.model.client_name import NATIVE
from cachemark.model.experiment import Experiment
from cachemark.model.units import parse_ms
from cachemark.runs.play import new_job

_PORT = 11211
_WARMUP_MS = 1000


@dataclass(frozen=True)
class DriveOptions(WorkOptions):
    """The work and its load."""

    threads: Annotated[int, Parameter(help="threads of the load generator")] = 1
    connections: Annotated[
        int | None, Parameter(help="number of connections; default: one for each thread")
    ] = None
    depth: Annotated[int | None, Parameter(help="outstanding operations on each connection")] = None
    reconnect_after: Annotated[
        int | None,
        Parameter(
            help="close each connection after this number of operations, and open it again",
            validator=validators.Number(gte=1),
        ),
    ] = None
    wire: Annotated[Literal["text", "binary", "meta"] | None, Parameter(help="the protocol")] = None
    duration: Annotated[str, Parameter(help="length of a window; a trace is played once")] = "10s"
    warmup: Annotated[
        str | None, Parameter(help="length of the warm-up; default: 1s, none of a cold cache")
    ] = None
    repeat: Annotated[
        int, Parameter(help="number of windows, each on new connections, or of searches")
    ] = 1
    round_trip: Annotated[
        str | None, Parameter(help="a distance to the server: a proxy adds 0.5ms, 10ms …")
    ] = None
    search: Annotated[
        str | None, Parameter(help="find the highest rate that meets an objective: 'p99<1ms'")
    ] = None
    set: Annotated[
        tuple[str, ...], Parameter(completer=set_paths, help="any setting of an experiment file")
    ] = ()


def drive(
    server: Annotated[
        str,
        Parameter(
            completer=completers.servers,
            help="HOST, HOST:PORT (default: 11211), unix:/path, or a server of `cachemark servers`",
        ),
    ] = "127.0.0.1:11211",
    *,
    options: Annotated[DriveOptions | None, Parameter(name="*")] = None,
    out: Annotated[Path, Parameter(name=["--runs", "--out"], help="folder of all runs")] = Path(
        "results"
    ),
    web: Annotated[bool, Parameter(help="show the run in a browser while it goes on")] = False,
    details: Annotated[bool, Parameter(help="print every table, not only the answers")] = False,
) -> int:
    """Load one server with the native client, and keep the results as a run.

    It is `cachemark run` with one client, one server and one block, so it has the verdicts and exit
    statuses of `run`, and `report`, `compare`, `history` and `export` read it. `cachemark-engine
    drive` needs no Python, keeps nothing, and shows each second.
    """
    if web:
        check_packages()
    experiment = _experiment(server, options or DriveOptions())
    plan, parties = planned_shown(experiment)
    return play_and_show(new_job(plan, parties, out), details=details, web=web)


def _experiment(server: str, options: DriveOptions) -> Experiment:
    """The experiment of one client and one server. Raises UsageError."""
    known = {kind.name for kind in kinds()}
    overrides = without_none(
        **{field.name: getattr(options, field.name) for field in fields(WorkOptions)},
        client=(_client(options),),
        server=(server if server.partition(":")[0] in known else f"remote:{_address(server)}",),
        round_trip=options.round_trip,
        threads=(options.threads,),
        connections=options.connections,
        depth=options.depth,
        wire=options.wire,
        measure_ms=parse_ms(options.duration, "--duration"),
        warmup_ms=parse_ms(options.warmup, "--warmup") if options.warmup else None,
        blocks=options.repeat,
        design="trials",
        search=options.search,
    )
    experiment = planned_experiment(suites.BASE, with_settings(overrides, options.set))
    timing = experiment.timing
    if options.warmup is None:
        timing = msgspec.structs.replace(timing, warmup_ms=_WARMUP_MS)
    return msgspec.structs.replace(experiment, name="drive", timing=timing)


def _client(options: DriveOptions) -> str:
    after = options.reconnect_after
    return NATIVE if after is None else f"{NATIVE}?reconnect_after={after}"


def _address(text: str) -> str:
    """Such as `10.0.0.7:11211`; `localhost` and a name with a dot alone have memcached's port.

    Any other word is more likely a misspelt server, and is refused as an address.

    >>> _address("localhost"), _address("10.0.0.7"), _address("a.b:1"), _address("nowhere")
    ('localhost:11211', '10.0.0.7:11211', 'a.b:1', 'nowhere')
    """
    is_host = ":" not in text and (text == "localhost" or "." in text)
    return f"{text}:{_PORT}" if is_host else text
