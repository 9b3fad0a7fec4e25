"""Several servers as one target, and no server at all."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachemark.endpoints.servers import RunningServer, parse_spec, running
from cachemark.model.errors import TrialError
from cachemark.model.server_stats import ServerStats, merge_stats
from tests.endpoints.servers.raw_requests import ask

THREE = "cluster:3:embedded:memory=16m,threads=1"


def test_counters_of_a_cluster_are_its_members_sums() -> None:
    cpu = str(max(os.sched_getaffinity(0)))
    with running(parse_spec(THREE), cpus=cpu) as cluster:
        assert len(set(cluster.addresses)) == 3
        for number, address in enumerate(cluster.addresses, 1):
            for _ in range(number):
                assert ask(address, b"set k 0 0 1\r\nx\r\n") == b"STORED\r\n"
        stats = cluster.stats()
        assert (stats["cmd_set"], stats["curr_items"]) == ("6", "3")
        assert stats["limit_maxbytes"] == str(3 * 16 * 2**20)
        assert "pid" not in stats
        assert cluster.facts.kind == "cluster"
        assert [member.address for member in cluster.facts.members] == cluster.addresses
        assert cluster.facts.address == ",".join(cluster.addresses)
        assert {frozenset(os.sched_getaffinity(pid)) for pid in cluster.pids} == {
            frozenset({int(cpu)})
        }
        use, ours = cluster.use(), cluster.pids
    assert use is not None
    assert use.threads >= 3
    assert len(ours) == 3
    for pid in ours:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_member_that_dies_is_named() -> None:
    with running(parse_spec(THREE)) as cluster:
        os.kill(cluster.pids[1], 9)
        with pytest.raises(TrialError, match=r"member 2 of 3 \(embedded at .*status -9"):
            _until_it_fails(cluster)
        assert cluster.use() is None


def _until_it_fails(server: RunningServer) -> None:
    while True:
        server.stats()


def test_a_member_that_cannot_start_ends_the_others() -> None:
    with (
        pytest.raises(TrialError, match="exited"),
        running(parse_spec("cluster:2:command:false {port}")),
    ):
        pass


def test_several_remote_servers_are_one_target() -> None:
    with running(parse_spec("cluster:2:embedded:memory=16m")) as ours:
        ask(ours.addresses[1], b"set k 0 0 1\r\nx\r\n")
        with running(parse_spec(f"remote:{','.join(ours.addresses)}")) as remote:
            assert remote.addresses == ours.addresses
            assert remote.stats()["cmd_set"] == "1"
            assert remote.use() is None
            assert remote.pids == []
            assert [member.kind for member in remote.facts.members] == ["remote", "remote"]


def test_no_server_is_an_empty_target() -> None:
    with running(parse_spec("none")) as nothing:
        assert nothing.addresses == []
        assert nothing.stats() == {}
        assert nothing.use() is None
        assert nothing.pids == []
        assert nothing.facts.kind == "none"


def test_counters_that_a_member_lacks_are_left_out() -> None:
    readings = [{"cmd_get": "1", "evictions": "2"}, {"cmd_get": "10"}]
    assert merge_stats([ServerStats(each) for each in readings]) == {"cmd_get": "11"}


def test_values_that_are_no_amounts_are_not_summed() -> None:
    both = {"pid": "7", "uptime": "3", "pointer_size": "64", "version": "1.6", "rusage_user": "0.5"}
    other = {**both, "pid": "8", "uptime": "4", "rusage_user": "0.7"}
    assert merge_stats([ServerStats(both), ServerStats(other)]) == {
        "pointer_size": "64",
        "version": "1.6",
    }


@given(st.lists(st.dictionaries(st.sampled_from("abcd"), st.integers(0)), max_size=4))
def test_amounts_are_summed(members: list[dict[str, int]]) -> None:
    texts = [ServerStats({name: str(n) for name, n in stats.items()}) for stats in members]
    shared = set.intersection(*map(set, members)) if members else set()
    assert merge_stats(texts) == {
        name: str(sum(stats[name] for stats in members)) for name in shared
    }
