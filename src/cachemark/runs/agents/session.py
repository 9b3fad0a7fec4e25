"""The running servers and workers of an agent, and its answers to requests.

A session lives as long as the agent is connected to a coordinator. Requests come one after the
other, in one thread; `abort` may come at any time, from another.
"""

import contextlib
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import msgspec

from cachemark.endpoints.client_versions import with_version
from cachemark.endpoints.clients import ClientSpec, parse_client, registry
from cachemark.endpoints.fleet import Fleet, RunMonitor, Share
from cachemark.endpoints.servers import RunningServer, listening_on, parse_spec, running, tls
from cachemark.host import process
from cachemark.host.binaries import binaries, of_command
from cachemark.host.memory import check_memory
from cachemark.host.noise import NoiseMonitor
from cachemark.host.placement import halves, usable_cpus
from cachemark.host.temporary import temporary_folder
from cachemark.model.client_name import without_repeat
from cachemark.model.errors import DECODE_ERRORS, TrialError, UsageError
from cachemark.model.hosts import Host
from cachemark.model.machine_limits import Check
from cachemark.model.outcome import Outcome
from cachemark.model.plan import NO_SERVER, client_labels, make_plan
from cachemark.model.tape_facts import TapeFacts
from cachemark.runs.agents import messages
from cachemark.runs.agents.bandwidth import offer_bytes, receive_bytes
from cachemark.runs.agents.clock import read_clock
from cachemark.runs.agents.identity import identify
from cachemark.runs.agents.messages import HostAnswer, HostFailure
from cachemark.runs.agents.sitting import SittingPlace, play_here
from cachemark.runs.agents.slices import SlicePlayer
from cachemark.runs.audit import Audit, Auditor
from cachemark.runs.tapes import Tape, TapeCache
from cachemark.runs.trials.callers import processes_of
from cachemark.runs.trials.sampler import Sampler

_LOG_CHARS = 4000


class _Watch:
    """A window on this host: its noise, and the samples of its server."""

    def __init__(
        self,
        server: RunningServer | None,
        workers: list[int],
        pids: list[int],
        tick_s: float | None,
    ) -> None:
        self.noise = NoiseMonitor()
        self.noise.start(workers, pids)
        self._threads = ExitStack()
        self._threads.enter_context(self.noise.watching())
        self.sampler = Sampler(server, tick_s=tick_s, noise=self.noise) if server else None
        if self.sampler:
            self._threads.enter_context(self.sampler)

    def end(self) -> None:
        """Stop sampling."""
        self._threads.close()


class Session:
    """The server, the workers and the tapes of this host. Use as a context manager.

    `examine` says whether the machine is fit to measure.
    """

    def __init__(self, entry: Host, examine: Callable[[], list[Check]]) -> None:
        self._entry = entry
        self._engine = process.binary_path()
        self._life, self._trial = ExitStack(), ExitStack()
        self._tapes: TapeCache | None = None
        self._tape: Tape | None = None
        self._servers: dict[int, RunningServer] = {}
        self._fleets: dict[int, Fleet] = {}
        self._slices: SlicePlayer | None = None
        self._watch: _Watch | None = None
        self._aborted = threading.Event()
        self._server_cpus, self._worker_cpus = _placement(entry)
        self._steps: dict[type[messages.AnyRequest], Callable[[Any], object]] = {
            messages.Identify: lambda _: identify(entry.cpus),
            messages.Examine: lambda _: examine(),
            messages.ReadClock: lambda asked: read_clock(asked.address, asked.port, asked.key),
            messages.OfferBytes: lambda _: offer_bytes(entry.address),
            messages.ReceiveBytes: lambda asked: receive_bytes(asked.address, asked.port),
            messages.AuditServers: self._audit,
            messages.WriteTape: self._write_tape,
            messages.StartServers: self._start_servers,
            messages.StartWorkers: self._start_workers,
            messages.PrepareWorkers: self._prepare,
            messages.ReadServer: lambda asked: _reading(self._servers.get(asked.arm)),
            messages.BeginWindow: self._begin_window,
            messages.PlayPhase: self._play_phase,
            messages.PlaySitting: self._play_sitting,
            messages.HostBeginSlices: lambda asked: self._slice_player().begin(
                asked.arm, asked.ready_s
            ),
            messages.PlaySlices: lambda asked: self._slice_player().play(asked.slices),
            messages.HostEndSlices: lambda asked: self._workers(asked.arm).end_slices(),
            messages.EndWindow: lambda _: self._end_window(),
            messages.EndTrial: lambda _: self._end_trial(),
        }

    def __enter__(self) -> "Session":
        self._tapes = TapeCache(self._engine, self._life.enter_context(temporary_folder()))
        return self

    def __exit__(self, *_: object) -> None:
        self._end_trial()
        self._life.close()

    def abort(self) -> None:
        """Kill the server and the workers now. Calls that wait for them raise TrialError."""
        self._aborted.set()
        for fleet in list(self._fleets.values()):
            fleet.kill()
        for server in list(self._servers.values()):
            for member in server.members:
                if member.child:
                    member.child.kill()

    def perform(self, request: messages.AnyRequest) -> object:
        """Carry out a request. Raises TrialError, UnsupportedError, UsageError."""
        if not isinstance(request, messages.EndTrial | messages.ReadClock):
            self._check_going_on()
        return self._steps[type(request)](request)

    def _audit(self, request: messages.AuditServers) -> Audit:
        experiment = request.experiment
        names = [*client_labels(experiment), *experiment.in_process]
        servers = {text: parse_spec(text) for text in [*experiment.servers, NO_SERVER]}
        plan = make_plan(experiment, request.skipped)
        clients = {text: self._client(without_repeat(text)) for text in names}
        with temporary_folder() as folder:
            tapes = TapeCache(self._engine, folder)
            return Auditor(plan, clients, servers).run(tapes, lambda _: None)

    def _write_tape(self, request: messages.WriteTape) -> TapeFacts:
        assert self._tapes is not None
        self._tape = self._tapes.get(
            request.workload, request.load, request.timing, request.seed, request.generations
        )
        return self._tape.facts

    def _start_servers(self, request: messages.StartServers) -> list[messages.ServerStart]:
        starts: list[messages.ServerStart] = []
        for number, text in enumerate(request.servers):
            self._check_going_on()
            try:
                starts.append(messages.ServerStart(started=self._start_server(number, text)))
            except (TrialError, UsageError) as error:
                starts.append(messages.ServerStart(failure=messages.HostFailure.of(error)))
        return starts

    def _start_server(self, number: int, text: str) -> messages.StartedServer:
        spec = listening_on(parse_spec(text), self._entry.address)
        server = self._trial.enter_context(running(spec, cpus=self._server_cpus))
        self._servers[number] = server
        own = [member.control.address for member in server.members if member.control]
        return messages.StartedServer(
            addresses=server.addresses,
            # Where clients encrypt, a control connection may be one of this host alone.
            controls=server.addresses if server.tls else own,
            tls=server.tls.contents() if server.tls else {},
            facts=server.facts,
            empty=server.use(),
            binaries=binaries("server", server.pids),
        )

    def _start_workers(self, request: messages.StartWorkers) -> messages.StartedWorkers:
        client = self._client(request.client).client
        client.require()
        count = processes_of(request.load, client.concurrency)
        fleet = Fleet(client.command, count, cpus=self._worker_cpus, name=client.id)
        self._fleets[request.arm] = self._trial.enter_context(fleet)
        check_memory(f"{len(self._fleets)} clients at once on {self._entry.name}")
        return messages.StartedWorkers(
            ready=fleet.hello(request.ready_s),
            count=count,
            command=client.command,
            cpus=self._worker_cpus,
            binaries=[
                *binaries("worker", [worker.pid for worker in fleet.workers]),
                *of_command("script", client.command),
            ],
        )

    def _prepare(self, request: messages.PrepareWorkers) -> None:
        if self._tape is None:
            raise TrialError("workers cannot be prepared without a tape")
        fleet = self._workers(request.arm)
        if server := self._servers.get(request.arm):
            fleet.server_pids = server.pids
        fleet.share = Share(first=request.first, segments=request.segments)
        asked = msgspec.structs.replace(request.request, tape=str(self._tape.path))
        if encryption := tls.written(request.tls, self._trial.enter_context(temporary_folder())):
            options = asked.options | encryption.worker_options()
            asked = msgspec.structs.replace(asked, options=options)
        fleet.prepare(asked, request.ready_s)

    def _begin_window(self, request: messages.BeginWindow) -> messages.ServerReading:
        reading = _reading(self._only_server)
        pids = [pid for server in self._servers.values() for pid in server.pids]
        workers = [worker.pid for fleet in self._fleets.values() for worker in fleet.workers]
        self._watch = _Watch(self._only_server, workers, pids, request.tick_s)
        self._trial.callback(self._watch.end)
        return reading

    def _play_phase(self, request: messages.PlayPhase) -> messages.HostPlayed:
        def progress(ops: int) -> None:
            if self._watch and self._watch.sampler:
                self._watch.sampler.note_progress(ops)

        watch = RunMonitor(progress=progress, silence_timeout_s=request.silence_s)
        fleet, planned_ns = self._workers(request.arm), request.run.start_unix_ns
        late_ns = max(0, time.time_ns() - planned_ns) if planned_ns else 0
        done = fleet.run(request.run, watch)
        return messages.HostPlayed(
            done=done, observed=fleet.observed, began_unix_ns=fleet.began_unix_ns, late_ns=late_ns
        )

    def _play_sitting(self, request: messages.PlaySitting) -> list[Outcome]:
        assert self._tapes is not None
        place = SittingPlace(
            client_of=self._client,
            tapes=self._tapes,
            worker_cpus=self._worker_cpus,
            servers=self._servers,
            check_going_on=self._check_going_on,
        )
        return play_here(request, place)

    def _slice_player(self) -> SlicePlayer:
        if self._slices is None:
            self._slices = SlicePlayer(self._fleets, self._servers, self._check_going_on)
            self._trial.callback(self._slices.close)
        return self._slices

    def _end_window(self) -> messages.WindowReading:
        watch = self._watch
        if watch is None:
            raise TrialError("no window was begun")
        watch.end()
        sampler = watch.sampler
        return messages.WindowReading(
            noise=watch.noise.stop(),
            server=_reading(self._only_server),
            samples=sampler.samples if sampler else [],
            command_counts=sampler.command_counts if sampler else [],
            sampler_began_unix_ns=sampler.began_unix_ns if sampler else 0,
        )

    def _end_trial(self) -> str:
        log = "".join(fleet.log_tail() for fleet in self._fleets.values())[-_LOG_CHARS:]
        with contextlib.suppress(TrialError):
            for fleet in self._fleets.values():
                if not self._aborted.is_set():
                    fleet.bye()
        self._trial.close()
        self._watch = self._slices = None
        self._fleets, self._servers = {}, {}
        self._aborted.clear()
        return log

    @property
    def _only_server(self) -> RunningServer | None:
        """The server of a trial; a sitting's player reads the servers of the sitting."""
        return next(iter(self._servers.values())) if len(self._servers) == 1 else None

    def _check_going_on(self) -> None:
        if self._aborted.is_set():
            raise TrialError("the trial was broken off")

    def _workers(self, arm: int) -> Fleet:
        if arm not in self._fleets:
            raise TrialError("no workers were started")
        return self._fleets[arm]

    def _client(self, text: str) -> ClientSpec:
        return with_version(parse_client(text, registry(self._engine)), lambda _: None)


def _reading(server: RunningServer | None) -> messages.ServerReading:
    """The counters of a server; nothing without one. Raises TrialError."""
    if server is None:
        return messages.ServerReading()
    stats = [dict(stats) for stats in server.member_stats()]
    return messages.ServerReading(stats=stats, use=server.use())


def _placement(entry: Host) -> tuple[str, str]:
    """The CPUs of servers and of workers. A host with both roles has half of its CPUs for each."""
    if len(entry.roles) == 1:
        return entry.cpus, entry.cpus
    usable = usable_cpus()
    cpus = sorted(process.parse_cpus(entry.cpus) & set(usable)) if entry.cpus else usable
    return halves(cpus)


class _Current:
    """The session of this process. A task cannot be handed an object that lives here."""

    session: Session | None = None


def use_session(session: Session | None) -> None:
    """Let tasks of this process use a session."""
    _Current.session = session


def perform(request: bytes) -> bytes:
    """Answer one request: the value, or the error that a user can mend."""
    return messages.encode(_answer(request))


def _answer(request: bytes) -> HostAnswer:
    try:
        if _Current.session is None:
            raise TrialError("this process is no agent")
        value = _Current.session.perform(messages.decode_request(request))
    except (UsageError, TrialError) as error:
        return HostAnswer(failure=HostFailure.of(error))
    except (OSError, *DECODE_ERRORS) as error:
        return HostAnswer(failure=HostFailure(text=f"{type(error).__name__}: {error}"))
    return HostAnswer(value=msgspec.Raw(messages.encode(value)))
