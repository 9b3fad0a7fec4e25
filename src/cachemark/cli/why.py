"""`cachemark why`: counts of one operation of some clients, and the differences they show."""

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from cyclopts import Parameter

from cachemark.analysis.number_format import count_of, spread
from cachemark.analysis.why.profile import shares_of
from cachemark.analysis.why.report import WhyReport, differences
from cachemark.cli import completers
from cachemark.cli.document_forms import write_document
from cachemark.cli.exit_status import FAILED, OK
from cachemark.cli.output import progress_lines, write_contents
from cachemark.cli.overrides import Overrides, changed_experiment, planned_experiment
from cachemark.cli.work_options import WorkOptions
from cachemark.endpoints.client_versions import with_version
from cachemark.endpoints.clients import Client, ClientSpec, parse_client, registry
from cachemark.endpoints.servers import parse_spec
from cachemark.host import process, system_calls
from cachemark.model.counts import CountedWork
from cachemark.model.errors import UsageError, refusing
from cachemark.model.experiment import Experiment, Load, Timing, Workload
from cachemark.model.work_length import plays_to_an_end
from cachemark.report.why import RENDERERS
from cachemark.runs.counting.counting import CountingPlan, count, runtime_of
from cachemark.runs.counting.instructions import VALGRIND
from cachemark.runs.planning.preflight import ask

_REPEAT, _LEAST_REPEAT, _MOST_REPEAT = 5, 3, 100
_PROFILE_MS = 5000
_OTHER_TIME = "Times of an earlier answer also differ with the machine's state; counts do not."
WhyForm = Literal["table", "markdown", "json", "html"]


@dataclass(frozen=True)
class Against:
    """Comparisons other than today's clients with each other."""

    server: Annotated[
        tuple[str, ...],
        completers.repeated(completers.servers, "count these servers instead, as one client plays"),
    ] = ()
    past: Annotated[
        Path | None, Parameter(help="compare with an earlier answer (--format json --out)")
    ] = None


@dataclass(frozen=True)
class Passes:
    """How often to count, and what besides."""

    repeat: Annotated[int, Parameter(help="number of repetitions, which give the error")] = _REPEAT
    profile: Annotated[
        Path | None, Parameter(help="sample functions too, and write flame graphs into this folder")
    ] = None
    instructions: Annotated[
        bool, Parameter(help="count instructions too, under valgrind, which takes minutes")
    ] = False


_USUAL = Passes()


def why(
    experiment: Annotated[
        str | None,
        Parameter(completer=completers.experiments, help="a suite or a file: its clients and work"),
    ] = None,
    *,
    client: Annotated[
        tuple[str, ...],
        completers.repeated(
            completers.clients,
            "a client, or all that match 'go/*'; the others are compared with the first",
        ),
    ] = (),
    against: Annotated[Against | None, Parameter(name="*")] = None,
    workload: Annotated[str | None, Parameter(help="this workload of the experiment")] = None,
    work: Annotated[WorkOptions | None, Parameter(name="*")] = None,
    wire: Annotated[
        Literal["own", "text", "binary", "meta"] | None, Parameter(help="the protocol")
    ] = None,
    passes: Annotated[Passes | None, Parameter(name="*")] = None,
    form: Annotated[WhyForm, Parameter(name="--format")] = "table",
    out: Annotated[Path | None, Parameter(help="write to this file")] = None,
) -> int:
    """Count CPU time, system calls, segments and bytes of one operation of each client.

    One caller plays each kind of a mix by itself. docs/why.md explains the sentences.
    """
    against, passes = against or Against(), passes or _USUAL
    _check(passes, against)
    overrides = Overrides(
        **asdict(work or WorkOptions()),
        client=client,
        server=against.server,
        workload=() if workload is None else (workload,),
        wire=wire,
    )
    planned = _planned(experiment, overrides)
    earlier = _earlier(against.past, planned) if against.past else None
    report = counted_report(planned, passes, earlier, of_servers=bool(against.server))
    write_document(report, RENDERERS, form, out)
    if passes.profile:
        _write_profiles(report, passes.profile)
    return FAILED if any(each.failure for each in report.counted) else OK


def _check(passes: Passes, against: Against) -> None:
    if not _LEAST_REPEAT <= passes.repeat <= _MOST_REPEAT:
        allowed = f"{_LEAST_REPEAT} to {_MOST_REPEAT}"
        raise UsageError(f"--repeat {passes.repeat}: {allowed}", "fewer repetitions have no error")
    if against.server and (passes.profile or passes.instructions):
        raise UsageError("--profile and --instructions are about clients", "leave out --server")
    if passes.instructions and not shutil.which(VALGRIND):
        raise UsageError(f"--instructions needs {VALGRIND}", f"apt-get install {VALGRIND}")


def _write_profiles(report: WhyReport, folder: Path) -> None:
    # Late, as templates take a while to load.
    from cachemark.report.why.profiles import profile_files  # noqa: PLC0415

    if files := profile_files(report.profiles):
        write_contents(files, folder, "--profile")


def _planned(experiment: str | None, overrides: Overrides) -> Experiment:
    """The experiment whose clients or servers to count. Raises UsageError."""
    if experiment is None and not overrides.client:
        raise UsageError("no client is named", "name some: --client A --client B")
    if experiment is None:
        own = resources.files("cachemark.cli").joinpath("why.toml").read_bytes()
        planned = changed_experiment(msgspec.toml.decode(own, type=Experiment), overrides)
    else:
        planned = planned_experiment(experiment, overrides)
    if overrides.server and (planned.in_process or len(planned.clients) != 1):
        text = "servers are compared with each other, as one client uses them"
        raise UsageError(text, "such as --client native --server memcached --server embedded")
    return planned


def _earlier(path: Path, planned: Experiment) -> WhyReport:
    """An earlier answer about the same work, with the file in its clients' names.

    Raises UsageError.
    """
    remedy = "write one: cachemark why … --format json --out FILE"
    with refusing(f"--past {path}", remedy, decodes=True):
        earlier = msgspec.json.decode(path.read_bytes(), type=WhyReport)
    if earlier.work != (work := _work_in_words(_workload(planned))):
        raise UsageError(f"--past {path} has counts of other work: {earlier.work}", f"count {work}")
    replace = msgspec.structs.replace
    counted = [replace(of, past_client=of.past_client or of.client) for of in earlier.counted]
    return replace(
        earlier,
        counted=[replace(of, client=f"{path.name}: {of.client}") for of in counted],
        profiles=[replace(of, client=f"{path.name}: {of.client}") for of in earlier.profiles],
    )


def counted_report(
    planned: Experiment,
    passes: Passes = _USUAL,
    earlier: WhyReport | None = None,
    *,
    of_servers: bool = False,
) -> WhyReport:
    """Count the experiment's clients, and sample each kind if asked. Raises UsageError.

    `of_servers`: its servers, as its client plays. `earlier`: each one's base, or the first's.
    """
    engine = process.binary_path()
    known = registry(engine)
    workload, load = _workload(planned), _load(planned)
    with progress_lines() as progress:
        names = [*planned.clients, *planned.in_process]
        clients = [with_version(parse_client(name, known), progress) for name in names]
        absent = _absent(clients, workload.mix, progress)
        clients = [each for each in clients if each.text not in {of.client for of in absent}]
        plan = CountingPlan(
            clients=clients,
            servers=[parse_spec(text) for text in planned.servers] if of_servers else [],
            loops={} if of_servers else _loops(clients, known),
            workload=workload,
            load=load,
            placement=planned.placement,
            repeat=passes.repeat,
            seed=planned.seed,
            profile_ms=_PROFILE_MS if passes.profile else 0,
            instructions=passes.instructions,
        )
        counted = count(plan, engine, progress)
    untraced = system_calls.missing_reason()
    missing = [f"System calls are not counted: {untraced}."] if untraced else []
    works = [*(earlier.counted if earlier else ()), *counted.works, *absent]
    profiles = [*(earlier.profiles if earlier else ()), *counted.profiles]
    return WhyReport(
        server="the embedded server",
        player=names[0] if of_servers else "",
        work=_work_in_words(workload),
        repeat=passes.repeat,
        counted=works,
        differences=differences(works, counted.unit_costs, of_servers=of_servers),
        unit_costs=counted.unit_costs,
        missing=[*missing, _OTHER_TIME] if earlier else missing,
        profiles=profiles,
        shares=[shares_of(each) for each in profiles],
    )


def _absent(
    clients: Sequence[ClientSpec], kinds: Iterable[str], progress: Callable[[str], None]
) -> list[CountedWork]:
    """Clients that are not on this machine, with the reason. Raises UsageError without a pair."""
    asked = {each.text: ask(each, Timing().ready_ms / 1e3) for each in clients}
    absent = {name: answer for name, answer in asked.items() if isinstance(answer, tuple)}
    if absent and (clients[0].text in absent or len(absent) == len(clients) - 1):
        raise UsageError(*next(iter(absent.values())))
    for reason, remedy in absent.values():
        progress(f"not counted: {reason}; {remedy}")
    return [
        CountedWork(client=name, kind=kind, failure=reason.removeprefix(f"{name}: "))
        for kind in kinds
        for name, (reason, _) in absent.items()
    ]


def _loops(clients: Sequence[ClientSpec], known: Mapping[str, Client]) -> dict[str, Client]:
    """The clients `null` of the clients' runtimes, where there is one."""
    runtimes = {runtime_of(each.client) for each in clients}
    nulls = {name: known.get(f"{name}/null") for name in sorted(runtimes)}
    return {name: null for name, null in nulls.items() if null and not null.missing()}


def _workload(of: Experiment) -> Workload:
    """The workload to count: a mix, whose kinds are counted one by one. Raises UsageError."""
    first, *others = of.workloads
    if others:
        names = ", ".join(each.name for each in of.workloads)
        raise UsageError(f"{of.name} has several workloads: {names}", "name one with --workload")
    if not first.mix or plays_to_an_end(first):
        raise UsageError(
            "each kind of operation is counted by itself: a trace or a sequence has none",
            "name the kinds: --mix get=1,set=1",
        )
    return first


def _load(of: Experiment) -> Load:
    """One caller in a closed loop with the experiment's protocol. Raises UsageError."""
    first = of.loads[0]
    if any(load.wire != first.wire for load in of.loads):
        raise UsageError(f"{of.name} uses several protocols", f"such as --wire {first.wire}")
    if opened := [load.name for load in of.loads if load.schedule != "closed" or load.think]:
        raise UsageError(
            f"load {opened[0]}: operations are counted in a closed loop without think time",
            "leave out --schedule, --rate and --think, or name another experiment",
        )
    return Load(name="one-caller", wire=first.wire)


def _work_in_words(of: Workload) -> str:
    keys = of.keys
    shape = keys.pattern or ("named" if keys.names else f"{spread(keys.length)} B")
    runs = [f"{of.run} keys an {kind}" for kind in ("mget", "mset") if kind in of.mix]
    values = f"values of {spread(of.values.size)} B"
    return ", ".join([f"{count_of(keys.count, 'key')} ({shape})", values, *runs])
