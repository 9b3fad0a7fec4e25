"""Before the first trial: what does not fit into memory, short windows, writes that are unseen."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from cachemark.analysis.unseen_writes import lines_about_order
from cachemark.endpoints.clients import ClientSpec, parse_client, registry
from cachemark.endpoints.servers import parse_spec
from cachemark.host import process
from cachemark.host.memory import check_planned_memory
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Load, Measure
from cachemark.model.experiment_file import parse
from cachemark.model.plan import Plan, make_plan
from cachemark.model.units import parse_ms
from cachemark.runs.planning.data_fit import lines_about_fit, lines_about_windows, sitting_bytes
from cachemark.runs.settings import generations_of
from cachemark.runs.tapes import DataSet, Generations
from tests.builders.outcomes import experiment

LOAD = Load(name="one", threads=2, processes=3)
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
EXPERIMENT = """
name = "e"
question = "Which?"
clients = ["native"]
servers = ["{server}"]
[[workloads]]
name = "w"
mix = {{ get = 1 }}
{extra}
[[loads]]
name = "l"
"""
# 100,000 items of 1 KiB with keys of 20 bytes.
DATA = DataSet(items=100_000, data_bytes=100_000 * 1044)


def lines(server: str, data: DataSet = DATA, extra: str = "") -> list[str]:
    plan = make_plan(parse(EXPERIMENT.format(server=server, extra=extra), "e.toml"))
    servers = {server: parse_spec(server)}
    return lines_about_fit(plan, servers, {("w", "l"): data})


@pytest.mark.parametrize(
    ("server", "limit", "advice"),
    [
        ("memcached", "64 MiB", "memory=152m"),
        ("memcached:memory=32", "32 MiB", "memory=152m"),
        ("embedded:memory=16m", "16 MiB", "memory=136m"),
        ("cluster:2:memcached:memory=16m", "32 MiB", "memory=80m"),
        ("nutcracker:memcached", "64 MiB", "memory=152m"),
    ],
)
def test_too_little_memory_is_told_with_the_remedy(server: str, limit: str, advice: str) -> None:
    (line,) = lines(server)
    assert "100 k items need about 1" in line
    assert f"{server} has {limit}: it will evict" in line
    assert line.endswith(advice)


@pytest.mark.parametrize(
    "server", ["memcached:memory=152m", "embedded:memory=1g", "yrmcds", "remote:127.0.0.1:1"]
)
def test_enough_or_unknown_memory_is_no_line(server: str) -> None:
    assert not lines(server)


def test_near_the_limit_it_may_evict() -> None:
    (line,) = lines("memcached:memory=120m")
    assert "it may evict" in line


def test_a_fill_is_meant_to_fill() -> None:
    assert not lines("memcached", extra="fill_percent = 80")


def window_lines(rate: float, measure_ms: int) -> list[str]:
    made = experiment(["a", "b"])
    timing = msgspec.structs.replace(made.timing, measure_ms=measure_ms)
    load = Load(name=made.loads[0].name, schedule="poisson", rate=rate)
    return lines_about_windows(
        make_plan(msgspec.structs.replace(made, loads=[load], timing=timing))
    )


@pytest.mark.parametrize(
    ("rate", "words", "longer"),
    [
        (500, "has 5 operations above its p99", "4s"),
        (244, "has no p99, which takes 368", "8.2s"),
        (100, "has no p99, which takes 368", "20s"),
    ],
)
def test_a_window_with_too_few_operations_names_the_needed_length(
    rate: float, words: str, longer: str
) -> None:
    (line,) = window_lines(rate, 1000)
    assert words in line
    assert line.endswith(f"--duration {longer}")
    assert window_lines(rate, parse_ms(longer, "--duration")) == []


def test_closed_loops_and_searches_get_no_note() -> None:
    made = experiment(["a"])
    assert lines_about_windows(make_plan(made)) == []
    load = Load(name=made.loads[0].name, schedule="poisson")
    search = msgspec.structs.replace(made, search="p99<1ms", loads=[load])
    assert lines_about_windows(make_plan(search)) == []


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


def load(**changes: Any) -> Load:
    return msgspec.structs.replace(LOAD, **changes)


def found(of: Load, server: str = "memcached", hosts: int = 1, *, rounds: bool = False) -> object:
    return generations_of(of, parse_spec(server), hosts=hosts, in_rounds=rounds)


@pytest.mark.parametrize(
    "changes",
    [{}, {"schedule": "poisson", "rate": 100}, {"depth": 8}, {"think": "1ms"}, {"connections": 1}],
)
def test_all_callers_of_all_hosts_are_lanes(changes: dict[str, Any]) -> None:
    assert found(load(**changes)) == Generations(lanes=6)
    assert found(load(**changes), "cluster:2:memcached", hosts=2) == Generations(lanes=12)


def test_arms_that_share_a_server_write_alike() -> None:
    assert found(LOAD, "remote:h:1", rounds=True) == Generations(lanes=6, shared_server=True)
    assert found(LOAD, "remote:h:1") == Generations(lanes=6)


@pytest.mark.parametrize(
    ("changes", "server"),
    [
        ({"connections": 4}, "memcached"),
        ({"depth": 8, "think": "1ms"}, "memcached"),
        ({"measure": Measure(rate=1)}, "memcached"),
        ({"depth": 8}, "nutcracker:memcached"),
        ({}, "none"),
    ],
)
def test_without_an_order_there_are_none(changes: dict[str, Any], server: str) -> None:
    assert found(load(**changes), server) is None


def order_lines(servers: list[str], mix: dict[str, float], **changes: Any) -> list[str]:
    made = experiment(["a"])
    workload = msgspec.structs.replace(made.workloads[0], mix=mix)
    changed = {"servers": servers, "workloads": [workload], "loads": [load(**changes)]}
    return lines_about_order(msgspec.structs.replace(made, **changed))


def test_a_plan_says_where_the_order_is_not_certain() -> None:
    mixed, quiet = {"get": 1.0, "set": 1.0}, {"get": 1.0, "set_noreply": 1.0}
    start = "one: lost and stale writes are not seen"
    unclaimed = f"{start} with clients that do not claim `in_order`"
    assert order_lines(["memcached"], mixed) == []
    assert order_lines(["memcached"], {"mget": 1.0, "set": 1.0}) == []
    assert order_lines(["memcached"], {"get": 1.0}, connections=4) == []
    assert order_lines(["memcached"], mixed, connections=4) == [
        f"{start}: a caller's operations go over several connections"
    ]
    assert order_lines(["memcached"], mixed, depth=8) == [unclaimed]
    for unread in ({"set": 1.0}, {"mget": 1.0, "add": 1.0}, {"get": 1.0, "mset": 1.0}):
        (line,) = order_lines(["memcached"], unread)
        assert line.endswith(
            ": lost and stale writes are not seen: "
            "no get, gets, gat or mget reads what a set stored"
        )
    assert order_lines(["memcached"], quiet) == [unclaimed]
    assert order_lines(["nutcracker:memcached"], mixed, depth=8) == [
        f"{unclaimed}, and through nutcracker"
    ]
