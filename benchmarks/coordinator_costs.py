"""The cost of many agents for the coordinator of a run over hosts. The agents here do nothing.

    python benchmarks/coordinator_costs.py              10, 50, 100 and 200 agents
    python benchmarks/coordinator_costs.py 400          another number

All agents are in one other process, each with connections of its own. For each number of agents,
the table has

- heartbeats: the messages per second that arrive while nothing is asked, and the CPU time of the
  coordinator for them, in percent of one CPU;
- request: the CPU time of the coordinator to ask one agent and read its answer;
- results: the bytes of one agent's results of a window, and the CPU time to merge all of them.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from distributed.scheduler import heartbeat_interval

from cachemark.host import process
from cachemark.host.temporary import temporary_folder
from cachemark.model import histogram
from cachemark.model.hosts import Hosts
from cachemark.model.merging import merge
from cachemark.model.protocol import Done, RunRequest
from cachemark.model.protocol_results import Operation, Sections, Timeline
from cachemark.runs.agents.agent import be_agent
from cachemark.runs.agents.certificates import COORDINATOR, write_certificates
from cachemark.runs.agents.coordinator import Coordinator, coordinating
from cachemark.runs.agents.dask_settings import configure
from cachemark.runs.agents.hosts_file import load_hosts
from cachemark.runs.agents.messages import AnyRequest, HostPlayed, PlayPhase, ReadServer
from cachemark.runs.agents.session import Session, use_session

COUNTS = [10, 50, 100, 200]
CONNECT_S = 300.0
ANSWER_S = 120.0
IDLE_S = 10.0
ROUNDS = 5
OPERATIONS = 100_000


class IdleSession(Session):
    """Answers a phase with results that were made before, and everything else with nothing."""

    def __init__(self, hosts: Hosts) -> None:
        super().__init__(hosts.hosts[0], examine=list)
        self._played = HostPlayed(done=made_up_results(), began_unix_ns=0, late_ns=0)

    def perform(self, request: AnyRequest) -> object:
        """Do nothing."""
        return self._played if isinstance(request, PlayPhase) else None


class Costs(NamedTuple):
    """One row of the table."""

    agents: int
    heartbeats_per_s: float
    idle_percent: float
    request_us: float
    result_bytes: int
    merge_ms: float


def made_up_results() -> Done:
    """The results of an agent whose response times are spread as real ones are."""
    chance = random.Random(1)
    times = [round(chance.lognormvariate(11.5, 0.5)) for _ in range(OPERATIONS)]
    blob, tenth = _encoded(times), _encoded(times[: OPERATIONS // 10])
    per_slice = [OPERATIONS // 1000] * 1000
    return Done(
        phase="measure",
        elapsed_ns=10**9,
        send_elapsed_ns=10**9,
        operations={
            kind: Operation(attempts=OPERATIONS, ok=OPERATIONS, response=blob, service=blob)
            for kind in ("get", "set")
        },
        timeline=Timeline(slice_ns=10**6, ok=per_slice, response_ns=[n * 10**5 for n in per_slice]),
        sections=Sections(length_ns=10**8, ok=[OPERATIONS // 10] * 10, response=[tenth] * 10),
    )


def _encoded(times_ns: list[int]) -> str:
    buckets = np.bincount([histogram.bucket_index(time) for time in times_ns])
    return histogram.encode(histogram.Histogram(buckets))


def write_hosts(path: Path, agents: int, port: int) -> None:
    """Write a hosts file with `agents` hosts, which have loopback addresses, and certificates."""
    write_certificates(path.parent / "certs", [COORDINATOR, *(f"h{n}" for n in range(agents))])
    lines = ['tls = "certs"', "[coordinator]", 'address = "127.0.0.1"', f"port = {port}"]
    for number in range(agents):
        role = "client" if number else "server"
        address = f"127.80.{number // 250}.{1 + number % 250}"
        lines += ["[[hosts]]", f'name = "h{number}"', f'roles = ["{role}"]']
        lines += [f'address = "{address}"', 'start = "there"']
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def free_port() -> int:
    """A port that no process uses now."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


async def serve_all(hosts: Hosts, folder: Path) -> None:
    """Be all agents of a hosts file, in this process."""
    session = IdleSession(hosts)
    use_session(session)
    await asyncio.gather(
        *(be_agent(hosts, host, session, str(folder / host.name)) for host in hosts.hosts)
    )


def measure(coordinator: Coordinator) -> Costs:
    """Let the agents be idle, then ask them, then get their results."""
    names = [host.name for host in coordinator.hosts.hosts]
    began = time.process_time()
    time.sleep(IDLE_S)
    idle_s = time.process_time() - began
    began = time.process_time()
    for _ in range(ROUNDS):
        coordinator.ask_each(dict.fromkeys(names, ReadServer()), msgspec.Raw, ANSWER_S)
    asked_s = time.process_time() - began
    phase = PlayPhase(run=RunRequest(phase="measure", duration_ms=1), silence_s=60)
    played = coordinator.ask_each(dict.fromkeys(names, phase), HostPlayed, ANSWER_S)
    began = time.process_time()
    merge([one.done for one in played.values()])
    return Costs(
        agents=len(names),
        heartbeats_per_s=len(names) / heartbeat_interval(len(names)),
        idle_percent=100 * idle_s / IDLE_S,
        request_us=1e6 * asked_s / ROUNDS / len(names),
        result_bytes=len(msgspec.json.encode(played[names[0]])),
        merge_ms=1e3 * (time.process_time() - began),
    )


def costs(agents: int) -> Costs:
    """Start the agents, and measure the coordinator."""
    with temporary_folder() as folder:
        file = folder / "hosts.toml"
        write_hosts(file, agents, free_port())
        command = [sys.executable, __file__, "--serve", str(file)]
        with (
            process.start(command, stdin=subprocess.DEVNULL),
            coordinating(
                load_hosts(file), file, connect_s=CONNECT_S, announce=lambda _: None
            ) as coordinator,
        ):
            return measure(coordinator)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("agents", nargs="*", type=int, default=COUNTS)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        configure()
        with temporary_folder() as folder:
            asyncio.run(serve_all(load_hosts(options.serve), folder))
        return
    print("agents  heartbeats/s  CPU idle %  CPU per request µs  result kB  merge all ms")
    for agents in options.agents:
        row = costs(agents)
        print(
            f"{row.agents:6}  {row.heartbeats_per_s:12.0f}  {row.idle_percent:10.1f}  "
            f"{row.request_us:18.0f}  {row.result_bytes / 1e3:9.1f}  {row.merge_ms:12.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
