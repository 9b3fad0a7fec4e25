"""Rounds over hosts: as on one host, with the servers on another one, or clients on several."""

from collections.abc import Generator
from contextlib import contextmanager
from itertools import count, pairwise
from pathlib import Path

import msgspec
import pytest
from distributed import Future

from cachemark.model.experiment import RoundsTiming
from cachemark.model.merging import merge_kinds
from cachemark.model.outcome import Outcome
from cachemark.runs.agents import coordinator as coordinator_module
from cachemark.runs.agents.clock import ClockReading
from cachemark.runs.agents.coordinator import Coordinator
from cachemark.runs.agents.messages import HostRequest, PlaySlices
from cachemark.runs.sittings.order import squares_for
from cachemark.runs.sittings.sitting import SittingDisplay, SittingSetting
from tests.builders.small_experiments import ROUNDS, read_outcomes, write
from tests.cli.in_process import Inside
from tests.report.test_figures_again import HEAD, check, told_as_valid
from tests.runs.agents.agents import Agents
from tests.runs.agents.conftest import SharedAgents
from tests.runs.agents.kill_matrix import CLOSED, setting_of, stage

WORK = """
mix = { get = 9, set = 1 }
keys = { count = 500 }
[[loads]]
name = "one"
"""
APART = (("both", "server", "127.0.0.1"), ("c", "client", "127.0.0.2"))


@pytest.mark.xdist_group("agents")
def test_arms_take_turns_on_the_host_of_clients(
    inside: Inside, shared_agents: SharedAgents, tmp_path: Path
) -> None:
    write(tmp_path, ROUNDS.replace("blocks = 2", 'blocks = 1\nnoise = "note"'))
    hosts = str(shared_agents.hosts_file(tmp_path, hosts=APART))
    ended = inside("run", "experiment.toml", "--hosts", hosts)
    assert ended.returncode == 0, ended.stderr
    arms = read_outcomes(tmp_path)
    assert len(arms) == 2
    for arm in arms:
        assert arm.state == "measured", arm.reason
        assert arm.verdict == "VALID", arm.reasons
        assert arm.server is not None
        assert arm.server.address.startswith("127.0.0.1:")
        assert arm.rounds is not None
        assert len(arm.rounds.slices.ops) > 1
        assert [(part.name, part.roles) for part in arm.hosts] == [
            ("both", ["server"]),
            ("c", ["client"]),
        ]
        assert all(part.noise is not None for part in arm.hosts)
    first, second = (arm.rounds for arm in arms)
    assert first is not None
    assert second is not None
    # In turns: no slice of one arm began before the other's slice of the same round had ended.
    assert first.arms == second.arms
    assert sorted([first.arm, second.arm]) == [0, 1]
    turns = sorted(
        (began, began + wall)
        for arm in (first, second)
        for began, wall in zip(arm.slices.began_ns, arm.slices.wall_ns, strict=True)
    )
    assert all(end <= begin for (_, end), (begin, _) in pairwise(turns))


@pytest.mark.xdist_group("agents")
def test_hosts_of_clients_play_each_slice_together(
    inside: Inside, shared_agents: SharedAgents, tmp_path: Path
) -> None:
    quiet = ROUNDS.replace("blocks = 2", 'blocks = 1\nnoise = "note"')
    # On a busy machine an operation may take longer than a slice of 20 ms.
    write(tmp_path, quiet, slice_ms="100", measure_ms="1200")
    hosts = str(shared_agents.hosts_file(tmp_path))
    ended = inside("run", "experiment.toml", "--hosts", hosts)
    arms = read_outcomes(tmp_path)
    assert [arm.state for arm in arms] == ["measured", "measured"], ended.stderr
    for arm in arms:
        check_arm(arm, measure_ms=1200)
    report = next(tmp_path.glob("results/*/report.md")).read_text(encoding="utf-8")
    assert "hosts: both server+client, c client" in report


@pytest.mark.xdist_group("agents")
@pytest.mark.parametrize("wrong_ns", [(600_000, 0), (0, 2_000_000)])
def test_hosts_with_unknown_clocks_have_no_slices_that_count(
    inside: Inside,
    shared_agents: SharedAgents,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    wrong_ns: tuple[int, int],
) -> None:
    """Each comparison is wrong by 0.6 ms, or one clock jumps between any two of them."""
    (error_ns, jump_ns), real, times = wrong_ns, Coordinator.clocks, count()

    def clocks(coordinator: Coordinator) -> dict[str, ClockReading]:
        jumped = {"both": 0, "c": jump_ns * next(times)}
        return {
            name: msgspec.structs.replace(
                found,
                error_ns=found.error_ns + error_ns,
                offset_ns=found.offset_ns + jumped[name],
            )
            for name, found in real(coordinator).items()
        }

    monkeypatch.setattr(Coordinator, "clocks", clocks)
    write(tmp_path, ROUNDS.replace("blocks = 2", 'blocks = 1\nnoise = "note"'))
    ended = inside("run", "experiment.toml", "--hosts", str(shared_agents.hosts_file(tmp_path)))
    arms = read_outcomes(tmp_path)
    assert [arm.verdict for arm in arms] == ["INVALID", "INVALID"], ended.stderr
    for arm in arms:
        check_arm(arm, measure_ms=240)
        assert arm.rounds is not None
        played = arm.rounds.void_slices
        assert not arm.rounds.slices.ops
        assert any(text.startswith(f"{played} of {played} slices are void") for text in arm.reasons)
    assert "slices are void" in ended.stdout


def check_arm(arm: Outcome, measure_ms: int) -> None:
    """Every operation is counted once, whichever slices the hosts did not start together."""
    assert arm.rounds is not None
    assert arm.measure is not None
    slices = arm.rounds.slices
    # On a busy machine slices are longer, and all of them may be void.
    planned = 2 * squares_for(measure_ms, arm.rounds.length_us / 1e3, arms=2)
    assert len(slices.ops) + arm.rounds.void_slices == planned
    assert all(skew_ns <= 1_000_000 for skew_ns in slices.skew_ns)
    assert len(slices.late_ns) == len(slices.skew_ns) == len(slices.ops)
    played = sum(slices.ops) + sum(slices.errors) + arm.rounds.void_ops
    assert played == sum(of.attempts for of in arm.measure.operations.values())
    rules = {found.rule: found.weight for found in arm.findings}
    assert "server-counters" not in rules
    assert ("void-slices" in rules) == (arm.rounds.void_slices > 0)
    parts = [part for part in arm.hosts if part.measure is not None]
    assert [part.name for part in parts] == ["both", "c"]
    of_hosts = merge_kinds([part.measure.operations for part in parts if part.measure])
    assert of_hosts == merge_kinds([arm.measure.operations])
    assert all(part.late_ns is not None for part in parts)
    assert all(part.noise is not None for part in arm.hosts)
    # The servers are on the host `both`, which knows their CPU time.
    assert all(ns > 0 for ns in slices.server_cpu_ns)


@pytest.mark.xdist_group("agents")
def test_an_agent_that_dies_in_a_slice_fails_all_arms(
    shared_agents: SharedAgents, tmp_path: Path
) -> None:
    agents = shared_agents.agents
    with (
        setting_of(CLOSED) as own,
        killing_in_slices(agents, "c"),
        stage(shared_agents.hosts_file(tmp_path)) as place,
    ):
        sets = [[msgspec.structs.replace(own, slices=True) for _ in range(2)]]
        timing = RoundsTiming(slice_ms=20)
        setting = SittingSetting(sets=sets, rounds=timing, seed=1)
        display = SittingDisplay(doing=lambda _: None, played=lambda _: None)
        outcomes = place.play_sitting(setting, display)
        left = agents.processes("both")
    agents.start_again("c")
    assert [outcome.state for outcome in outcomes] == ["failed", "failed"]
    assert all(outcome.reason.startswith("c: the agent is lost") for outcome in outcomes)
    assert left == []


@contextmanager
def killing_in_slices(agents: Agents, name: str) -> Generator[None]:
    """Kill an agent when it has been asked to play slices."""
    todo = [name]

    class Killing(Coordinator):
        def _submit(self, name: str, request: HostRequest) -> Future[bytes]:
            asked = super()._submit(name, request)
            if isinstance(request, PlaySlices) and name in todo:
                agents.kill(todo.pop())
            return asked

    coordinator_module.Coordinator = Killing
    try:
        yield
    finally:
        coordinator_module.Coordinator = Coordinator


@pytest.mark.xdist_group("agents")
def test_what_two_hosts_did_is_told_as_it_was_stored(
    inside: Inside, shared_agents: SharedAgents, tmp_path: Path
) -> None:
    (tmp_path / "again.toml").write_text(HEAD + WORK, encoding="utf-8")
    ended = inside("run", "again.toml", "--hosts", str(shared_agents.hosts_file(tmp_path)))
    (line,) = told_as_valid(tmp_path)
    assert line.raw["state"] == "measured", ended.stderr
    parts = [host["measure"]["operations"] for host in line.raw["hosts"] if host["measure"]]
    assert len(parts) == 2
    for kind, of in line.operations.items():
        assert of["ok"] == sum(part[kind]["ok"] for part in parts)
    check(inside, [line])
