"""Plays trials over hosts, and breaks an agent in each: killed, stopped, or cut off.

Usage: kill_matrix.py HOSTS_FILE AGENTS. AGENTS is JSON: for each host, the command of its agent.
It runs on the coordinator of `namespaces.py`, plays all rows, and prints a line for each.
"""

import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar
from unittest import mock

import msgspec

from cachemark.endpoints.clients import parse_client, registry
from cachemark.endpoints.servers import parse_spec
from cachemark.host import process
from cachemark.host.temporary import temporary_folder
from cachemark.model.experiment import Keys, Load, Timing, Workload
from cachemark.model.outcome import Cell, Outcome, Trial
from cachemark.runs.agents import coordinator as coordinator_module
from cachemark.runs.agents import messages
from cachemark.runs.agents.coordinator import Coordinator, coordinating
from cachemark.runs.agents.hosts_file import load_hosts
from cachemark.runs.agents.trial import HostsStage
from cachemark.runs.tapes import TapeCache
from cachemark.runs.trials.setting import Setting
from tests.runs.agents.agents import Agents

T = TypeVar("T")
_CONNECT_S = 120.0
# Shorter than in real runs: eight rows wait so long for a host that is silent.
_LOST_AFTER_S = 6
CLOSED = Load(name="closed", think="1ms")
OPEN = Load(name="open", schedule="uniform", rate=100)


class Row(NamedTuple):
    """Which host breaks, how, and the request that the coordinator is about to make."""

    how: str
    phase: str
    who: str


# `test_a_run_goes_on_without_a_lost_host` kills an agent in the phase `measure`.
ROWS = (
    Row("killed", "setup", "s"),
    Row("killed", "prepare", "c"),
    Row("stopped", "setup", "c"),
    Row("stopped", "prepare", "s"),
    Row("stopped", "measure", "c"),
    Row("stopped", "collect", "s"),
    Row("cut off", "setup", "s"),
    Row("cut off", "prepare", "c"),
    Row("cut off", "measure", "s"),
    Row("cut off", "collect", "c"),
    Row("killed", "collect", "s"),
)


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a row: its outcome, and the processes of the other hosts right after it."""

    row: Row
    state: str
    reason: str
    left: list[str]


def begins(request: messages.HostRequest, phase: str) -> bool:
    """Whether a request begins a phase."""
    if phase == "setup":
        return isinstance(request, messages.StartServers | messages.StartWorkers)
    if phase == "prepare":
        return isinstance(request, messages.PrepareWorkers)
    if phase == "measure":
        return isinstance(request, messages.PlayPhase) and request.run.phase == "measure"
    return isinstance(request, messages.EndWindow)


@contextmanager
def breaking(phase: str, act: Callable[[], None]) -> Generator[None]:
    """Do something once: before the first request of a phase is made."""
    todo = [act]

    class Breaking(Coordinator):
        def ask_each(
            self,
            requests: Mapping[str, messages.HostRequest],
            answer: type[T],
            timeout_s: float | None,
        ) -> dict[str, T]:
            if todo and any(begins(request, phase) for request in requests.values()):
                todo.pop()()
            return super().ask_each(requests, answer, timeout_s)

    coordinator_module.Coordinator = Breaking
    try:
        yield
    finally:
        coordinator_module.Coordinator = Coordinator


def _link(name: str, state: str) -> None:
    subprocess.run(["ip", "link", "set", f"v-{name}", state], check=True, timeout=60)


@contextmanager
def setting_of(load: Load) -> Generator[Setting]:
    """A trial that is played in half a second."""
    workload = Workload(name="mixed", mix={"get": 9, "set": 1}, records=200, keys=Keys(count=50))
    timing = Timing(warmup_ms=0, measure_ms=500)
    engine = process.binary_path()
    with temporary_folder() as folder:
        yield Setting(
            run="r",
            trial=Trial(
                index=0,
                block=0,
                cell=Cell(client="native", server="embedded", workload="mixed", load=load.name),
                tape_seed=1,
            ),
            client=parse_client("native", registry(engine)),
            server=parse_spec("embedded"),
            workload=workload,
            load=load,
            timing=timing,
            tape=TapeCache(engine, folder).get(workload, load, timing, 1),
            server_cpus="",
            worker_cpus="",
            noise="note",
        )


@contextmanager
def stage(file: Path) -> Generator[HostsStage]:
    """Connect the agents of a hosts file."""
    with coordinating(
        load_hosts(file), file, connect_s=_CONNECT_S, announce=lambda _: None
    ) as connected:
        yield HostsStage(connected)


def hurt(agents: Agents, row: Row) -> None:
    """Break the agent of a row."""
    if row.how == "killed":
        agents.kill(row.who)
    elif row.how == "stopped":
        agents.send(row.who, signal.SIGSTOP)
    else:
        _link(row.who, "down")


def heal(agents: Agents, row: Row) -> None:
    """Let it take part in the next row."""
    if row.how == "killed":
        agents.start_again(row.who)
    elif row.how == "stopped":
        agents.send(row.who, signal.SIGCONT)
    else:
        _link(row.who, "up")


def play_row(file: Path, agents: Agents, row: Row) -> Result:
    """Play one trial, and break it."""
    with ExitStack() as stack:
        setting = stack.enter_context(setting_of(CLOSED))
        stack.enter_context(breaking(row.phase, lambda: hurt(agents, row)))
        place = stack.enter_context(stage(file))
        outcome: Outcome = place.run_trial(setting, lambda _: None)
        others = [name for name in agents.running if name != row.who]
        left = [text for name in others for text in agents.processes(name)]
    if row != ROWS[-1]:
        heal(agents, row)
    return Result(row=row, state=outcome.state, reason=outcome.reason, left=left)


def main() -> None:
    agents = Agents(msgspec.json.decode(sys.argv[2], type=dict[str, list[str]]))
    try:
        with mock.patch.object(coordinator_module, "LOST_AFTER_S", _LOST_AFTER_S):
            for row in ROWS:
                result = play_row(Path(sys.argv[1]), agents, row)
                print(msgspec.json.encode(result).decode(), flush=True)
    finally:
        agents.stop()


if __name__ == "__main__":
    main()
