"""Three hosts with TLS between them: what dies, or is cut off, fails its trial and leaves nothing.

One run is broken off in two ways, one after the other, and resumed each time.
"""

import os
import select
import shlex
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cachemark.host import process
from cachemark.model.outcome import Outcome, from_line
from cachemark.runs.agents.certificates import COORDINATOR as COORDINATOR_NAME
from cachemark.runs.agents.certificates import write_certificates
from cachemark.runs.sittings.order import squares_for
from tests.builders.small_experiments import ROUNDS
from tests.conftest import ROOT
from tests.runs.agents.hosts_files import write_hosts
from tests.runs.agents.namespaces import COORDINATOR, Network, address_of, network

NAMES = ("s", "c1", "c2")
CACHEMARK = (sys.executable, "-m", "cachemark")
_GONE_S = 15
_BEGIN_S = 120
_RUN_S = 180
EXPERIMENT = """
name = "broken-off"
question = "What is left?"
clients = [{client}]
servers = ["embedded"]
blocks = 2
noise = "note"
[timing]
warmup_ms = 0
measure_ms = 6000
[[workloads]]
name = "mixed"
mix = {{ get = 9, set = 1 }}
records = 1000
keys = {{ count = 100 }}
[[loads]]
name = "slow"
think = "10ms"
"""


class Fleet:
    """The hosts, their agents, and a run that can be broken off."""

    def __init__(self, folder: Path, net: Network, file: Path) -> None:
        self.folder, self.net, self._file = folder, net, file
        self.agents: dict[str, process.Child] = {}
        self._fifo = folder / "fifo"
        os.mkfifo(self._fifo)
        command = [sys.executable, str(ROOT / "tests/runs/agents/announcing_worker.py")]
        command += [str(self._fifo), process.binary_path(), "worker", "network"]
        text = EXPERIMENT.format(client=repr(f"command:{shlex.join(command)}"))
        (folder / "e.toml").write_text(text, encoding="utf-8")

    def agent(self, name: str) -> process.Child:
        """Start the agent of a host."""
        command = self.net.hosts[name].enter(*CACHEMARK, "agent", str(self._file), name)
        self.agents[name] = process.start(command)
        return self.agents[name]

    def start(self, *arguments: str) -> process.Child:
        """Start `cachemark run` on the coordinator, and wait until a window begins."""
        command = self.net.hub.enter(*CACHEMARK, "run", *arguments, "--hosts", str(self._file))
        reader = os.open(self._fifo, os.O_RDONLY | os.O_NONBLOCK)
        run = process.start(command, cwd=self.folder)
        waiting = select.poll()
        waiting.register(reader, select.POLLIN)
        begun = waiting.poll(_BEGIN_S * 1e3)
        os.close(reader)
        assert begun, run.log_tail()
        return run

    def outcomes(self) -> list[Outcome]:
        """The namespaces of the only run."""
        return [
            from_line(line)
            for path in self.folder.glob("results/*/outcomes.jsonl")
            for line in path.read_bytes().splitlines()
        ]

    def wait_until_idle(self, name: str) -> None:
        """Wait until a host has no process but its agent; each has 15 s to end."""
        for pid in self.net.hosts[name].processes() - {self.agents[name].pid}:
            try:
                ended = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            waiting = select.poll()
            waiting.register(ended, select.POLLIN)
            gone = waiting.poll(_GONE_S * 1e3)
            os.close(ended)
            assert gone, f"{name}: process {pid} is left"


@pytest.fixture
def fleet(tmp_path: Path) -> Generator[Fleet]:
    """Three hosts with their agents."""
    with network(NAMES) as net, _fleet(tmp_path, net) as found:
        yield found


@contextmanager
def _fleet(folder: Path, net: Network) -> Generator[Fleet]:
    hosts = tuple(
        (name, "server" if name == "s" else "client", address_of(number))
        for number, name in enumerate(NAMES)
    )
    file = write_hosts(folder, hosts, coordinator=COORDINATOR, port=8786, start="there", tls=True)
    write_certificates(folder / "certs", [COORDINATOR_NAME, *NAMES])
    found = Fleet(folder, net, file)
    try:
        for name in NAMES:
            found.agent(name)
        yield found
    finally:
        for child in found.agents.values():
            child.stop()


@pytest.mark.slow("a host is lost after 12 s; a window of 6 s")
def test_whatever_breaks_fails_its_trial_and_leaves_nothing(fleet: Fleet) -> None:
    # The coordinator: nothing of the trial is stored, no host has a process of it.
    with fleet.start("e.toml") as run:
        os.kill(run.pid, signal.SIGKILL)
        for name in NAMES:
            fleet.wait_until_idle(name)
    assert fleet.outcomes() == []
    # A cable: the trial fails, the others stop at once, and the run ends.
    with fleet.start("--resume") as run:
        fleet.net.cut("c1")
        assert run.wait(_RUN_S)
        assert run.exited() == 1
        assert "continue with cachemark run --resume" in " ".join(run.log_tail().split())
    for name in NAMES:
        fleet.wait_until_idle(name)
    fleet.net.mend("c1")
    (cut,) = fleet.outcomes()
    assert cut.state == "failed"
    assert cut.reason.startswith("c1: the agent is lost")
    # With all of them back, the run goes on to its end.
    with fleet.start("--resume") as run:
        assert run.wait(_RUN_S), run.log_tail()
    _, last = fleet.outcomes()
    assert last.state == "measured"
    assert [part.name for part in last.hosts] == list(NAMES)


@pytest.mark.slow("three agents start, each in a network of its own")
def test_two_hosts_play_rounds_on_a_third(fleet: Fleet) -> None:
    """Every operation of both hosts is counted, whatever the machine did to their starts."""
    (fleet.folder / "r.toml").write_text(
        ROUNDS.replace("blocks = 2", 'blocks = 1\nnoise = "note"'), encoding="utf-8"
    )
    file = str(fleet.folder / "hosts.toml")
    command = fleet.net.hub.enter(*CACHEMARK, "run", "r.toml", "--hosts", file)
    with process.start(command, cwd=fleet.folder) as run:
        assert run.wait(_RUN_S), run.log_tail()
    arms = fleet.outcomes()
    assert [arm.state for arm in arms] == ["measured", "measured"]
    for arm in arms:
        assert arm.rounds is not None
        assert arm.measure is not None
        slices = arm.rounds.slices
        # On a busy machine, slices grow for the callers of both hosts.
        squares = squares_for(240, arm.rounds.length_us / 1000, 2)
        assert len(slices.ops) + arm.rounds.void_slices == 2 * squares
        played = sum(slices.ops) + sum(slices.errors) + arm.rounds.void_ops
        assert played == sum(of.attempts for of in arm.measure.operations.values())
        assert "server-counters" not in {found.rule for found in arm.findings}
        assert [part.name for part in arm.hosts if part.measure] == ["c1", "c2"]
        # No clock of a namespace is its own, and a link has a delay.
        for part in arm.hosts:
            assert abs(part.clock_offset_ns) <= part.clock_error_ns
    for name in NAMES:
        fleet.wait_until_idle(name)
