"""Rounds over hosts: as on one host, with the servers on another one."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from tests.agents.conftest import SharedAgents
from tests.builders.small_experiments import ROUNDS, read_outcomes, write
from tests.cli.in_process import Inside, inside

__all__ = ["inside"]

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
