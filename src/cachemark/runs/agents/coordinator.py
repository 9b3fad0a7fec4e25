"""The coordinator's side: connects the agents, asks them, and says which of them is lost.

Dask's scheduler runs in this process. Each request is a task of one agent: it has no retries, and
can run nowhere else.
"""

import asyncio
import contextlib
import logging
import secrets
import sys
import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec
from distributed import Client, Future, LocalCluster, Scheduler, wait
from distributed.metrics import time as heartbeat_clock_s
from distributed.scheduler import KilledWorker, NoValidWorkerError, WorkerState, heartbeat_interval

from cachemark.host import process
from cachemark.model.errors import HostLostError, TrialError, UsageError
from cachemark.model.hosts import Host, Hosts
from cachemark.runs.agents import messages
from cachemark.runs.agents.certificates import COORDINATOR
from cachemark.runs.agents.clock import ClockReading, ClockResponder
from cachemark.runs.agents.dask_settings import LOST_AFTER_S, NOWHERE, RESOURCE, configure
from cachemark.runs.agents.messages import EndTrial, HostAnswer, HostRequest, ReadClock
from cachemark.runs.agents.security import SCHEME, security, with_certificates
from cachemark.runs.agents.session import perform

T = TypeVar("T")
# Time limits for agents to connect, and to answer a trivial request.
CONNECT_S = 60.0
ANSWER_S = 60.0
_ABORT_S = 5.0
_MISSED_HEARTBEATS = 3
_LOOK_S = 0.2
_TICK_S = 0.25


def silence_limit_s(agents: int) -> float:
    """The longest silence of an agent's heartbeat; with many agents, each sends fewer. Pure."""
    return max(LOST_AFTER_S, _MISSED_HEARTBEATS * heartbeat_interval(agents))


class Coordinator:
    """The connected agents of a hosts file."""

    def __init__(self, hosts: Hosts, scheduler: Scheduler, client: Client, port: int) -> None:
        self.hosts = hosts
        self._scheduler, self._client, self._port = scheduler, client, port
        self._clock_key = secrets.token_bytes(32)
        self._agents: dict[str, WorkerState] = {}
        self._asked = 0
        self.lost: dict[str, str] = {}

    @property
    def clock_key(self) -> bytes:
        """With it hosts recognise the answers of this coordinator's clock."""
        return self._clock_key

    def addresses(self) -> list[str]:
        """The address of this process for the agents, in Dask's form: `tls://HOST:PORT`."""
        return [self._scheduler.address, *(agent.address for agent in self._agents.values())]

    def wait_for_agents(self, refused: Sequence[str], timeout_s: float) -> None:
        """Wait until each host's agent has connected. Raises UsageError."""
        wanted = {host.name for host in self.hosts.hosts}
        deadline = time.monotonic() + timeout_s
        while True:
            workers = self._client.scheduler_info(n_workers=-1)["workers"]
            addresses = {str(worker["name"]): address for address, worker in workers.items()}
            if unknown := sorted(addresses.keys() - wanted):
                raise UsageError(
                    f"the agent {unknown[0]!r} has connected, which is no host of this file",
                    "stop it, or start it with the same hosts file",
                )
            if addresses.keys() == wanted and self._keep_agents(addresses):
                return
            if time.monotonic() > deadline:
                raise _absent_error(self.hosts, sorted(wanted - addresses.keys()), refused)
            time.sleep(_LOOK_S)

    def _keep_agents(self, addresses: Mapping[str, str]) -> bool:
        """Keep the scheduler's facts of each agent; False if one has just left."""
        states = {name: self._scheduler.workers.get(of) for name, of in addresses.items()}
        self._agents = {name: state for name, state in states.items() if state is not None}
        return len(self._agents) == len(states)

    def ask(self, host: Host, request: HostRequest, answer: type[T], timeout_s: float | None) -> T:
        """Ask one host, and wait for its answer. Raises TrialError, UnsupportedError."""
        return self.ask_each({host.name: request}, answer, timeout_s)[host.name]

    def ask_each(
        self, requests: Mapping[str, HostRequest], answer: type[T], timeout_s: float | None
    ) -> dict[str, T]:
        """Ask several hosts at once; returns their answers by name.

        The first failure ends it: the other hosts break off this trial. Raises
        TrialError, UnsupportedError.
        """
        try:
            self.check()
            asked = {name: self._submit(name, request) for name, request in requests.items()}
            return self._collect(asked, self._agents, answer, timeout_s)
        except BaseException:
            self.abort()
            raise

    def ask_arm(
        self, requests: Mapping[str, HostRequest], answer: type[T], timeout_s: float | None
    ) -> dict[str, T]:
        """As `ask_each`, about one of several arms: a failure breaks off nothing of the others.

        Raises TrialError, UnsupportedError when all hosts have answered.
        """
        found = self.ask_each(requests, HostAnswer, timeout_s)
        return {name: _value(name, one, answer) for name, one in found.items()}

    def end_trial(self) -> dict[str, str]:
        """Stop servers and workers on all hosts that are left; returns the ends of their logs."""
        logs: dict[str, str] = {}
        left = [host.name for host in self.hosts.hosts if host.name not in self.lost]
        asked = {name: self._submit(name, EndTrial()) for name in left}
        for name, future in asked.items():
            with contextlib.suppress(TrialError):
                logs |= self._collect({name: future}, [name], str, ANSWER_S)
        return logs

    def clocks(self) -> dict[str, ClockReading]:
        """Compare every host's clock with this one's. Raises TrialError."""
        request = ReadClock(
            address=self.hosts.coordinator.address, port=self._port, key=self._clock_key
        )
        return self.ask_each(
            {host.name: request for host in self.hosts.hosts}, ClockReading, ANSWER_S
        )

    def check(self) -> None:
        """Raise HostLostError if a host is lost, also if it has no request."""
        self.find_lost()
        for name, why in self.lost.items():
            raise HostLostError(name, why)

    def find_lost(self) -> None:
        """Note in `lost` every host whose agent has ended, or has sent no heartbeats."""
        for name in self._agents.keys() - self.lost.keys():
            with contextlib.suppress(HostLostError):
                self._check_alive(name)

    def go_on_with(self, hosts: Hosts) -> None:
        """Go on with these hosts only: the others are lost."""
        self.hosts = hosts
        self._agents = {host.name: self._agents[host.name] for host in hosts.hosts}
        self.lost = {}

    def abort(self) -> None:
        """Kill all servers and workers on all hosts that can be reached, at once."""
        with contextlib.suppress(Exception):
            self._client.sync(self._abort_all)

    async def _abort_all(self) -> None:
        await asyncio.gather(
            *(
                asyncio.wait_for(self._abort(agent.address), _ABORT_S)
                for name, agent in self._agents.items()
                if name not in self.lost
            ),
            return_exceptions=True,
        )

    async def _abort(self, address: str) -> None:
        await self._scheduler.broadcast(
            msg={"op": "abort_trial"}, workers=[address], on_error="ignore"
        )

    def _submit(self, name: str, request: HostRequest) -> Future[bytes]:
        self._asked += 1
        return self._client.submit(
            perform,
            messages.encode(request),
            workers=[self._agents[name].address],
            allow_other_workers=False,
            resources={RESOURCE: 1},
            retries=0,
            pure=False,
            key=f"{name}-{self._asked}",
        )

    def _collect(
        self,
        asked: Mapping[str, Future[bytes]],
        watched: Collection[str],
        answer: type[T],
        timeout_s: float | None,
    ) -> dict[str, T]:
        """Read all answers, as long as none of the watched hosts is lost.

        Raises TrialError, UnsupportedError at the first failure.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        waiting, answers = dict(asked), dict[str, T]()
        while waiting:
            ready = {name: future for name, future in waiting.items() if future.done()}
            answers |= self._read(ready, answer)
            waiting = {name: future for name, future in waiting.items() if name not in ready}
            for name in watched:
                self._check_alive(name)
            if waiting and deadline is not None and time.monotonic() > deadline:
                raise self._lost_error(next(iter(waiting)), "the agent does not answer")
            if waiting:
                with contextlib.suppress(asyncio.TimeoutError, TimeoutError):
                    wait(list(waiting.values()), timeout=_TICK_S)
        return answers

    def _check_alive(self, name: str) -> None:
        """Raise HostLostError if an agent has ended, or its heartbeats have.

        A new agent at the same address counts as lost: it lacks this run's servers and workers.
        """
        agent = self._agents[name]
        silent_s = heartbeat_clock_s() - agent.last_seen
        here = self._scheduler.workers.get(agent.address) is agent
        if not here or silent_s > silence_limit_s(len(self._agents)):
            raise self._lost_error(name)

    def _lost_error(self, name: str, why: str = "") -> HostLostError:
        """Give up a host; if it only hung, it does not go on with its request either."""
        limit_s = silence_limit_s(len(self._agents))
        ended = f"the agent is lost: it ended, or could not be reached for {limit_s:g} s"
        self.lost[name] = f"{name}: {why or ended}"
        with contextlib.suppress(Exception):
            self._client.sync(
                self._scheduler.remove_worker, self._agents[name].address, stimulus_id="lost"
            )
        return HostLostError(name, self.lost[name])

    def _read(self, ready: Mapping[str, Future[bytes]], answer: type[T]) -> dict[str, T]:
        """Read answers that have come, all in one message. Raises TrialError, UnsupportedError."""
        for name, future in ready.items():
            if future.status != "finished":
                raise self._error(name, cast("BaseException | None", future.exception()))
        try:
            texts = cast("list[bytes]", self._client.gather(list(ready.values())))
        except Exception as error:
            self.check()
            raise TrialError(f"answers were lost: {type(error).__name__}: {error}") from error
        return {name: _decoded(name, text, answer) for name, text in zip(ready, texts, strict=True)}

    def _error(self, name: str, error: BaseException | None) -> TrialError:
        if isinstance(error, KilledWorker | NoValidWorkerError):
            return self._lost_error(name)
        return TrialError(f"{name}: the agent failed: {type(error).__name__}: {error}")


def _decoded(name: str, text: bytes, answer: type[T]) -> T:
    """An answer as a value, or unchanged if the caller wants an `Answer`."""
    received = messages.decode_answer(text)
    return cast("T", received) if answer is HostAnswer else _value(name, received, answer)


def _value(name: str, received: HostAnswer, answer: type[T]) -> T:
    """The value of an answer. Raises TrialError, UnsupportedError if there is none."""
    if received.failure is not None:
        raise received.failure.error(name)
    return msgspec.json.decode(received.value, type=answer)


@contextmanager
def coordinating(
    hosts: Hosts, file: Path, *, connect_s: float = CONNECT_S, announce: Callable[[str], None]
) -> Generator[Coordinator]:
    """Listen, start the agents that start here, and wait for all. Raises UsageError.

    At the end it disconnects the agents, so they stop all that they have started.
    """
    configure()
    with ExitStack() as stack:
        refused = stack.enter_context(_refusals())
        hosts = stack.enter_context(with_certificates(hosts))
        cluster = stack.enter_context(_scheduler(hosts))
        client = stack.enter_context(Client(cluster))
        port = int(cluster.scheduler_address.rpartition(":")[2])
        coordinator = Coordinator(hosts, cast("Scheduler", cluster.scheduler), client, port)
        place = hosts.coordinator
        stack.enter_context(ClockResponder(place.address, port, coordinator.clock_key))
        # The kernel kills a child with the thread that started it, so that has to be this one.
        agent = [sys.executable, "-m", "cachemark", "agent", str(file)]
        options = ["--once", "--port", str(port), "--certs", hosts.tls]
        for host in (host for host in hosts.hosts if host.start == "here"):
            stack.enter_context(process.start([*agent, host.name, *options]))
        announce(f"waits for {len(hosts.hosts)} agents on {place.address}:{port}")
        coordinator.wait_for_agents(refused, connect_s)
        try:
            yield coordinator
        finally:
            coordinator.abort()


@contextmanager
def _scheduler(hosts: Hosts) -> Generator[LocalCluster]:
    """Dask's scheduler in this process, without workers. Raises UsageError."""
    place = hosts.coordinator
    options: dict[str, Any] = {
        "n_workers": 0,
        "host": place.address,
        "scheduler_port": place.port,
        "protocol": f"{SCHEME}://",
        "scheduler_kwargs": {"dashboard": False, "dashboard_address": NOWHERE},
        "security": security(hosts, COORDINATOR),
        "silence_logs": logging.CRITICAL,
    }
    try:
        cluster = LocalCluster(**options)
    except (OSError, RuntimeError) as error:
        raise UsageError(
            f"cannot listen on {place.address}:{place.port}: {error.__cause__ or error}",
            "`coordinator` in the hosts file is an address of this machine and a free port",
        ) from error
    with cluster:
        cast("Scheduler", cluster.scheduler).http_server.stop()
        yield cluster


class _RefusalLog(logging.Handler):
    """Keeps Dask's log lines about connections whose certificates it refuses."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line once; an agent tries again and again."""
        arguments = record.args
        if "handshake failed" in record.msg and isinstance(arguments, tuple):
            line = f"{arguments[1]}: {arguments[2]}"
            if line not in self.lines:
                self.lines.append(line)


@contextmanager
def _refusals() -> Generator[list[str]]:
    logger, handler = logging.getLogger("distributed.comm.tcp"), _RefusalLog()
    logger.setLevel(logging.WARNING)
    logger.propagate = False
    logger.addHandler(handler)
    try:
        yield handler.lines
    finally:
        logger.removeHandler(handler)


def _absent_error(hosts: Hosts, missing: list[str], refused: Sequence[str]) -> UsageError:
    place = hosts.coordinator
    text = f"no agent has connected from {', '.join(missing)}"
    if refused:
        text += f"; refused was {refused[-1]}"
    return UsageError(
        text,
        f"on that host: cachemark agent FILE {missing[0]}; it has to reach {place.address}, TCP "
        f"and UDP port {place.port}",
    )
