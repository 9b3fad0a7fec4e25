"""A sitting that does not fit into memory is refused before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from cachemark.endpoints.clients import ClientSpec, parse_client, registry
from cachemark.host import process
from cachemark.host.memory import check_planned_memory
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Load
from cachemark.model.experiment_file import parse
from cachemark.model.plan import Plan, make_plan
from cachemark.runs.planning.data_fit import sitting_bytes

TEXT = """
name = "x"
question = "q"
design = "rounds"
clients = ["native", "python/pymemcache"]
servers = ["embedded"]
blocks = 2
[[workloads]]
name = "mixed"
mix = { get = 1 }
[[loads]]
name = "one"
"""
MIB = 2**20


def plan_of(clients: list[str], **load: Any) -> Plan:
    found = parse(TEXT, "x.toml")
    loads = [Load(name="one", **load)]
    return make_plan(msgspec.structs.replace(found, clients=clients, loads=loads))


@pytest.fixture(scope="module")
def specs() -> dict[str, ClientSpec]:
    known = registry(process.binary_path())
    names = ("native", "python/pymemcache", "java/folsom", "php/memcached", "perl/fast")
    return {name: parse_client(name, known) for name in names}


def test_all_processes_of_a_sitting_count(specs: dict[str, ClientSpec]) -> None:
    pair = sitting_bytes(plan_of(["native", "python/pymemcache"]), specs)
    with_java = sitting_bytes(plan_of(["native", "python/pymemcache", "java/folsom"]), specs)
    assert 50 * MIB < pair < 300 * MIB
    assert with_java > pair + 200 * MIB


@pytest.mark.parametrize("name", ["php/memcached", "perl/fast"])
def test_callers_that_are_processes_count_one_by_one(
    name: str, specs: dict[str, ClientSpec]
) -> None:
    one = sitting_bytes(plan_of(["native", name], threads=1), specs)
    eight = sitting_bytes(plan_of(["native", name], threads=8), specs)
    assert eight >= one + 7 * 30 * MIB


def test_trials_need_no_sitting(specs: dict[str, ClientSpec]) -> None:
    plan = plan_of(["native", "python/pymemcache"])
    assert sitting_bytes(msgspec.structs.replace(plan, sittings=[]), specs) == 0


def test_what_does_not_fit_is_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal: 2097152 kB\nMemAvailable: 1048576 kB\n")
    check_planned_memory("14 clients", 768 * MIB, tmp_path)
    with pytest.raises(UsageError, match="14 clients: together they need about 769 MiB") as found:
        check_planned_memory("14 clients", 769 * MIB, tmp_path)
    assert "768 MiB are free" in str(found.value)
    assert "--set design=trials" in found.value.remedy
