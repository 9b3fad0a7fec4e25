"""The counting pass over clients or servers: every kind of operation, several times, in turns."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from cachemark.endpoints.clients import Client, ClientSpec
from cachemark.endpoints.servers import RunningServer, ServerSpec, parse_spec, running
from cachemark.host.engine_output import engine_output
from cachemark.host.placement import cores, placement, usable_cpus
from cachemark.host.process import parse_cpus
from cachemark.host.system_calls import missing_reason
from cachemark.host.temporary import temporary_folder
from cachemark.model.counts import CountedWork, Counts, FoldedStacks, UnitCosts
from cachemark.model.errors import TrialError, UsageError, with_remedy
from cachemark.model.experiment import Load, Placement, Timing, Workload
from cachemark.model.units import parse_size
from cachemark.runs.counting.calls import count_calls
from cachemark.runs.counting.instructions import count_instructions
from cachemark.runs.counting.player import CountingPlace, Work, playing, server_of
from cachemark.runs.counting.processor import count_allocations, count_processor, without_loop
from cachemark.runs.counting.profiles import take_profiles
from cachemark.runs.counting.traffic import count_traffic
from cachemark.runs.tapes import TapeCache

# The additional length of values, to see whether allocated bytes grow with them.
_LONGER_BYTES, _LONGEST_BYTES = 4096, 2**19


class CountingPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The clients to count, and their work: each kind of the workload's mix by itself.

    `loops` are the clients `null` by runtime, such as `python`, whose cost is no library's.
    Each kind is sampled for `profile_ms`; 0: not at all. `instructions`: count them too. If servers
    are named, they are counted instead, while the first client plays.
    """

    clients: list[ClientSpec]
    servers: list[ServerSpec] = []
    loops: dict[str, Client] = {}
    workload: Workload
    load: Load
    placement: Placement = Placement()
    repeat: int
    seed: int = 1
    profile_ms: int = 0
    instructions: bool = False


_Pass = Callable[[ClientSpec, Sequence[Work], RunningServer, CountingPlace], dict[str, Counts]]


class _Tally(NamedTuple):
    """One repetition of one client or server: its counts, or why there are none, by kind."""

    version: str
    counts: dict[str, Counts | str]


class Counted(NamedTuple):
    """The counts and profile of each kind and client, and unit costs of each repetition."""

    works: list[CountedWork]
    unit_costs: list[UnitCosts]
    profiles: list[FoldedStacks]


def count(plan: CountingPlan, engine: str, progress: Callable[[str], None]) -> Counted:
    """Count each kind of operation of each client. Raises UsageError.

    A failure of a client is not raised: it is in `failure` of its counts.
    """
    with temporary_folder() as folder:
        usable = usable_cpus()
        server, worker = placement(plan.placement, usable, cores(usable))
        place = CountingPlace(server_cpus=server, worker_cpus=worker, folder=folder)
        works = _works(plan, TapeCache(engine, folder))
        parties = plan.servers or plan.clients
        tallies: dict[str, list[_Tally]] = {spec.text: [] for spec in parties}
        units: list[UnitCosts] = []
        # The passes that a language's loop has too.
        own: list[_Pass] = [count_processor, count_allocations]
        own += [count_instructions] if plan.instructions else []
        for number in range(plan.repeat):
            units.append(measured_unit_costs(worker, server))
            progress(f"the loops of the languages: repetition {number + 1} of {plan.repeat}")
            loops = {name: _loop(client, works, place, own) for name, client in plan.loops.items()}
            for spec in parties:
                progress(f"{spec.text}: repetition {number + 1} of {plan.repeat}")
                if isinstance(spec, ServerSpec):
                    tally = _tally_of_server(spec, plan.clients[0], works, place)
                else:
                    loop = loops.get(runtime_of(spec.client), {})
                    tally = _tally(spec, works, place, own, loop)
                tallies[spec.text].append(tally)
        profiles: list[FoldedStacks] = []
        for spec in plan.clients if plan.profile_ms else ():
            progress(f"{spec.text}: profile")
            profiles += take_profiles(spec, works, place, plan.profile_ms)
    counted = [
        _counted(spec.text, kind, tallies[spec.text])
        for kind in plan.workload.mix
        for spec in parties
    ]
    return Counted(counted, units, profiles)


def runtime_of(client: Client) -> str:
    """The name before the stroke of a client's id, such as `python`."""
    return client.id.partition("/")[0]


def _works(plan: CountingPlan, tapes: TapeCache) -> list[Work]:
    """Each kind of the mix by itself."""

    def work(kind: str, workload: Workload, longer: Work | None = None) -> Work:
        tape = tapes.get(workload, plan.load, Timing(), plan.seed)
        return Work(kind=kind, workload=workload, load=plan.load, tape=tape, longer=longer)

    works: list[Work] = []
    for kind in plan.workload.mix:
        alone = msgspec.structs.replace(plan.workload, name=kind, mix={kind: 1.0}, loads=None)
        longer = _longer(alone)
        works.append(work(kind, alone, longer and work(kind, longer)))
    return works


def _longer(of: Workload) -> Workload | None:
    """The work with longer values; None if they have no one size, or a server may refuse them."""
    try:
        size = parse_size(of.values.size, "values.size")
    except UsageError:
        return None
    values = msgspec.structs.replace(of.values, size=str(size + _LONGER_BYTES))
    longer = msgspec.structs.replace(of, name=f"{of.name}-longer", values=values)
    return longer if size <= _LONGEST_BYTES else None


def _loop(
    client: Client, works: Sequence[Work], place: CountingPlace, own: Sequence[_Pass]
) -> dict[str, Counts]:
    """The cost of a language's own loop, by kind. Raises TrialError."""
    with running(parse_spec("none"), cpus=place.server_cpus) as server:
        spec = ClientSpec(text=client.id, client=client)
        passes = [each(spec, works, server, place) for each in own]
    return {work.kind: _joined(*(each.get(work.kind) for each in passes)) for work in works}


def _tally(
    client: ClientSpec,
    works: Sequence[Work],
    place: CountingPlace,
    own: Sequence[_Pass],
    loop: Mapping[str, Counts],
) -> _Tally:
    in_process, asked = client.client.in_process, [work.kind for work in works]
    try:
        with running(server_of(client), cpus=place.server_cpus) as server:
            with playing(client, place.worker_cpus) as player:
                version = player.ready.library_version
                lacking = {work.kind: player.lacking(work, server) for work in works}
                works = [work for work in works if not lacking[work.kind]]
            passes = [each(client, works, server, place) for each in own]
            if not missing_reason():
                passes.append(count_calls(client, works, server, place))
        if not in_process:
            passes.append(count_traffic(client, works, place))
    except TrialError as error:
        return _Tally("", dict.fromkeys(asked, error.text))
    return _Tally(
        version,
        {
            kind: reason
            or without_loop(_joined(*(each.get(kind) for each in passes)), loop.get(kind))
            for kind, reason in lacking.items()
        },
    )


def _tally_of_server(
    spec: ServerSpec, client: ClientSpec, works: Sequence[Work], place: CountingPlace
) -> _Tally:
    try:
        with running(spec, cpus=place.server_cpus) as server:
            if len(server.pids) != 1:
                raise TrialError("cachemark counts a server that it starts as one process")
            passes = [count_processor(client, works, server, place, of_server=True)]
            if not missing_reason():
                passes.append(count_calls(client, works, server, place, of_server=True))
    except TrialError as error:
        reason = with_remedy(error.text, error.remedy)
        return _Tally("", {work.kind: reason for work in works})
    counts = {work.kind: _joined(*(each[work.kind] for each in passes)) for work in works}
    return _Tally(server.facts.version, {**counts})


def _joined(*parts: Counts | None) -> Counts:
    """One struct with the figures that each part has counted."""
    return Counts(
        **{
            name: value
            for part in filter(None, parts)
            for name, value in msgspec.structs.asdict(part).items()
            if value is not None
        }
    )


def _counted(text: str, kind: str, tallies: Sequence[_Tally]) -> CountedWork:
    """The counts of one client and kind in all repetitions, or the first failure."""
    of = CountedWork(client=text, version=tallies[-1].version, kind=kind)
    found = [tally.counts[kind] for tally in tallies]
    failures = [each for each in found if isinstance(each, str)]
    counts = [each for each in found if isinstance(each, Counts) and not failures]
    return msgspec.structs.replace(of, repetitions=counts, failure="".join(failures[:1]))


def measured_unit_costs(cpus: str, peer_cpus: str) -> UnitCosts:
    """CPU time of one system call of each kind, on these CPUs; empty: any. Raises UsageError."""
    command = ["unit-costs"]
    for option, where in (("--cpu", cpus), ("--peer-cpu", peer_cpus)):
        if where:
            command += [option, str(min(parse_cpus(where)))]
    text = engine_output(command, "build the engine again: make setup")
    costs = msgspec.json.decode(text, type=dict[str, dict[str, float]])
    return UnitCosts(**{name: ns / 1e3 for name, ns in costs["cost_ns"].items()})
