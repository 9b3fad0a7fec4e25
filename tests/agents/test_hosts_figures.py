"""The figures of a run over hosts, derived again from its stored lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents.conftest import SharedAgents
from tests.cli.in_process import Inside
from tests.report.test_figures_again import HEAD, check, told_as_valid

WORK = """
mix = { get = 9, set = 1 }
keys = { count = 500 }
[[loads]]
name = "one"
"""


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
