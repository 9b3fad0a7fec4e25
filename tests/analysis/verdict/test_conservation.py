"""Verdicts: what makes a trial's figures not be shown."""

from typing import Any

import msgspec

from cachemark.analysis.verdict import TrialVerdict, commands_per_server, judge
from cachemark.analysis.verdict.conservation import idle_servers
from cachemark.model import histogram
from cachemark.model.experiment import Keys, Load, Workload
from cachemark.model.protocol import Done, Operation
from cachemark.model.protocol_results import Groups
from cachemark.model.server_stats import ServerStats
from tests.builders.histograms import from_values

WORKLOAD = Workload(name="w", mix={"get": 1}, run=10)
CLOSED = Load(name="l")
OPEN = Load(name="l", schedule="poisson", rate=1000)
COUNTERS = ("cmd_get", "get_hits", "get_misses", "cmd_set", "evictions")
BEFORE = ServerStats(dict.fromkeys(COUNTERS, "100"))


def window(**kinds: Operation) -> Done:
    """A window of one second."""
    return Done(phase="measure", elapsed_ns=10**9, send_elapsed_ns=10**9, operations=kinds)


def stats(**rises: int) -> ServerStats:
    """The server's counters after the window."""
    return ServerStats({name: str(100 + rises.get(name, 0)) for name in COUNTERS})


def judged(measure: Done, load: Load = CLOSED, shared: bool = False, **rises: int) -> TrialVerdict:
    """The judgement with counters that rose so."""
    return judge(
        measure,
        workload=WORKLOAD,
        load=load,
        before=BEFORE,
        after=stats(**rises),
        shared_server=shared,
    )


GETS = Operation(attempts=10, ok=10, hits=7, misses=3, keys=10)


def test_counts_that_agree_are_valid() -> None:
    assert judged(window(get=GETS), cmd_get=10, get_hits=7, get_misses=3).verdict == "VALID"


def test_a_client_that_claims_more_is_invalid() -> None:
    judgement = judged(window(get=GETS), cmd_get=9, get_hits=6, get_misses=3)
    assert judgement.verdict == "INVALID"
    assert "cmd_get rose by 9, the client counted 10" in judgement.reasons[0]


def test_a_server_that_counts_more_is_invalid_unless_shared() -> None:
    rises: dict[str, Any] = {"cmd_get": 12, "get_hits": 9, "get_misses": 3}
    assert judged(window(get=GETS), **rises).verdict == "INVALID"
    shared = judged(window(get=GETS), shared=True, **rises)
    assert shared.verdict == "VALID"
    assert shared.notes


def test_failed_operations_may_have_reached_the_server_or_not() -> None:
    gets = Operation(attempts=10, ok=8, hits=8, keys=8, errors={"timeout": 2})
    for reached in (8, 9, 10):
        verdict = judged(window(get=gets), cmd_get=reached, get_hits=reached).verdict
        assert verdict == "VALID", reached
    assert judged(window(get=gets), cmd_get=11, get_hits=11).verdict == "INVALID"
    assert judged(window(get=gets), cmd_get=7, get_hits=7).verdict == "INVALID"


def test_keys_of_a_multiget_are_counted_one_by_one() -> None:
    mgets = Operation(attempts=6, ok=6, hits=30, keys=30)
    assert judged(window(mget=mgets), cmd_get=30, get_hits=30).verdict == "VALID"
    assert judged(window(mget=mgets), cmd_get=6, get_hits=30).verdict == "INVALID"


def test_sets_without_a_reply_are_held_against_the_server() -> None:
    sets = Operation(attempts=6, ok=6, keys=6)
    assert judged(window(set_noreply=sets), cmd_set=6).verdict == "VALID"
    assert judged(window(set_noreply=sets), cmd_set=5).verdict == "INVALID"


def judged_stats(measure: Done, before: ServerStats, after: ServerStats) -> TrialVerdict:
    """The judgement with these readings alone."""
    return judge(measure, workload=WORKLOAD, load=CLOSED, before=before, after=after)


def test_deletes_without_reply_count_as_hits_and_misses_together() -> None:
    deletes = Operation(attempts=6, ok=6, keys=6)
    before = ServerStats({"delete_hits": "1", "delete_misses": "0", "cmd_set": "0"})
    for hits, misses, sets, verdict in [
        (3, 3, 0, "VALID"),
        (0, 6, 0, "VALID"),
        (3, 2, 0, "INVALID"),
        (3, 3, 1, "INVALID"),
    ]:
        after = ServerStats(
            {
                "delete_hits": str(1 + hits),
                "delete_misses": str(misses),
                "cmd_set": str(sets),
            }
        )
        judgement = judged_stats(window(delete_noreply=deletes), before, after)
        assert judgement.verdict == verdict, (hits, misses, sets)


def test_a_cas_whose_key_was_deleted_meanwhile_is_refused_too() -> None:
    swaps = Operation(attempts=9, ok=9, hits=6, misses=3, not_stored=4, keys=9)
    names = ("cas_hits", "cas_badval", "cas_misses")
    before = ServerStats(dict.fromkeys(names, "0"))
    for badval, missing, verdict in [
        (4, 0, "VALID"),
        (3, 1, "VALID"),
        (3, 0, "INVALID"),
        (4, 1, "INVALID"),
    ]:
        after = ServerStats(dict(zip(names, ("2", str(badval), str(missing)), strict=True)))
        judgement = judged_stats(window(cas=swaps), before, after)
        assert judgement.verdict == verdict, (badval, missing)


SETS = Operation(attempts=50, ok=50, keys=50)


def rules(judgement: TrialVerdict) -> list[str]:
    return [finding.rule for finding in judgement.findings if finding.weight == "INVALID"]


def test_a_lost_connection_whose_sets_no_counter_confirms_is_invalid() -> None:
    none = ServerStats()
    again = msgspec.structs.replace(window(set_noreply=SETS), reconnects=1)
    assert rules(judged_stats(again, none, none)) == ["lost-without-reply"]
    assert rules(judged_stats(window(set_noreply=SETS), none, none)) == []
    replied = msgspec.structs.replace(window(set=SETS), reconnects=1)
    assert rules(judged_stats(replied, none, none)) == []
    # The server's count of sets decides where it has one.
    assert rules(judged(again, cmd_set=50)) == []
    assert rules(judged(again, cmd_set=49)) == ["server-counters"]


def test_a_connection_only_the_server_saw_is_a_reconnect_too() -> None:
    before, after = (ServerStats({"total_connections": count}) for count in ("3", "4"))
    assert rules(judged_stats(window(set_noreply=SETS), before, after)) == ["lost-without-reply"]
    assert rules(judged_stats(window(set_noreply=SETS), before, before)) == []


def test_connections_that_were_closed_as_asked_are_not_lost() -> None:
    renewed = msgspec.structs.replace(window(set_noreply=SETS), renewed=7)
    before, after = (ServerStats({"total_connections": count}) for count in ("3", "10"))
    assert rules(judged_stats(renewed, before, after)) == []
    eighth = ServerStats({"total_connections": "11"})
    assert rules(judged_stats(renewed, before, eighth)) == ["lost-without-reply"]
    too_few = ServerStats({"total_connections": "9"})
    assert rules(judged_stats(renewed, before, too_few)) == ["server-counters"]


def test_failed_connects_are_told() -> None:
    failed = msgspec.structs.replace(window(get=GETS), failed_connects=3)
    texts = [finding.text for finding in judged_stats(failed, BEFORE, BEFORE).findings]
    assert "3 attempts to open a connection failed" in texts


def test_wrong_values_and_wrong_sums_are_invalid() -> None:
    wrong = Operation(attempts=10, ok=9, hits=9, keys=9, wrong_values=1)
    assert judged(window(get=wrong), cmd_get=10, get_hits=10).verdict == "INVALID"
    lost = Operation(attempts=11, ok=10, hits=10, keys=10)
    assert judged(window(get=lost), cmd_get=10, get_hits=10).verdict == "INVALID"


def test_nothing_done_is_invalid() -> None:
    failed = Operation(attempts=3, ok=0, errors={"connection": 3})
    assert "no operation succeeded" in judged(window(get=failed)).reasons[0]


def test_a_rate_needs_as_many_operations_as_a_median() -> None:
    for count, verdict in ((1, "INVALID"), (5, "INVALID"), (6, "VALID")):
        gets = Operation(attempts=count, ok=count, hits=count, keys=count)
        judgement = judged(window(get=gets), cmd_get=count, get_hits=count)
        assert judgement.verdict == verdict, count
        told = [f"the window has {count} of the 6 operations that a rate needs"]
        assert judgement.reasons == (told if verdict == "INVALID" else [])


def lagging(lag_ns: int, response_ns: int, **fields: Any) -> Done:
    """An open loop whose operations were sent late by as much."""
    blob = histogram.encode(from_values([response_ns] * 10))
    lag = histogram.encode(from_values([lag_ns] * 10))
    gets = msgspec.structs.replace(GETS, response=blob, service=blob)
    return msgspec.structs.replace(window(get=gets), send_lag=lag, **fields)


def test_a_generator_that_lags_is_invalid() -> None:
    rises: dict[str, Any] = {"cmd_get": 10, "get_hits": 7, "get_misses": 3}
    assert judged(lagging(90_000, 200_000), OPEN, **rises).verdict == "VALID"
    assert judged(lagging(150_000, 200_000), OPEN, **rises).verdict == "INVALID"
    assert judged(lagging(150_000, 10_000_000), OPEN, **rises).verdict == "VALID"


def test_an_open_loop_that_falls_behind_is_overload() -> None:
    rises: dict[str, Any] = {"cmd_get": 10, "get_hits": 7, "get_misses": 3}
    behind = lagging(1000, 200_000, unsent=1)
    assert judged(behind, OPEN, **rises).verdict == "OVERLOAD"


def test_connections_that_bound_are_noted() -> None:
    rises: dict[str, Any] = {"cmd_get": 10, "get_hits": 7, "get_misses": 3}
    bound = judged(lagging(10_000_000, 20_000_000, queued=4), OPEN, **rises)
    assert bound.verdict == "VALID"
    assert "4 operations were due and waited for a free connection" in bound.notes


def test_a_fill_that_evicts_went_too_far() -> None:
    sets = Operation(attempts=5, ok=5, keys=50)
    fill = msgspec.structs.replace(WORKLOAD, fill_percent=80.0)
    judgement = judge(
        window(mset_noreply=sets),
        workload=fill,
        load=CLOSED,
        before=BEFORE,
        after=stats(cmd_set=50, evictions=2),
    )
    assert judgement.verdict == "INVALID"


def test_an_open_loop_that_sent_nothing_is_invalid() -> None:
    empty = histogram.encode(from_values([]))
    nothing = Operation(attempts=0, ok=0, response=empty, service=empty)
    silent = msgspec.structs.replace(window(get=nothing), send_lag=empty, unsent=1000)
    judgement = judged(silent, OPEN)
    assert judgement.verdict == "INVALID"
    assert {"nothing-done", "no-lag"} <= {finding.rule for finding in judgement.findings}


def spread(commands: list[int], **keys: Any) -> list[str]:
    """The rules that find fault with how commands were spread over servers."""
    workload = Workload(name="w", mix={"get": 1}, keys=Keys(**{"count": 10_000, **keys}))
    return [finding.rule for finding in idle_servers(workload, commands)]


def test_a_server_without_commands_makes_the_trial_invalid() -> None:
    assert spread([1000, 0]) == ["idle-servers"]
    assert spread([1000, 1]) == []
    assert spread([1000]) == []


def test_too_few_keys_or_commands_say_nothing_of_their_spread() -> None:
    assert spread([99, 0]) == []
    assert spread([1000, 0], count=99) == []
    assert spread([9000, 0], distribution="zipf:0.99") == []
    assert spread([10_000, 0], distribution="zipf:0.99") == ["idle-servers"]


def test_commands_per_server_are_rises_of_all_or_nothing() -> None:
    before = [ServerStats({"cmd_get": "5"}), ServerStats({"cmd_get": "7", "cmd_set": "1"})]
    after = [ServerStats({"cmd_get": "9"}), ServerStats({"cmd_get": "7", "cmd_set": "3"})]
    assert commands_per_server(before, after) == [4, 2]
    assert commands_per_server([*before, ServerStats()], [*after, ServerStats()]) == []


def in_groups(ok: int, *, timed: int | None = None, attempts: int = 10) -> TrialVerdict:
    """The judgement of ten operations, of which groups of four were counted."""
    gets = Operation(attempts=attempts, ok=10, hits=10, keys=10)
    if attempts > 10:
        gets = msgspec.structs.replace(gets, errors={"server": attempts - 10})
    time = histogram.encode(from_values([1_000] * (ok if timed is None else timed)))
    measure = msgspec.structs.replace(
        window(get=gets), groups=Groups(length=4, ok=ok, time=time if ok else None)
    )
    return judged(measure, cmd_get=10, get_hits=10)


def test_groups_add_up_to_the_operations_without_cut_ones() -> None:
    assert in_groups(2).verdict == "VALID"
    for wrong in (1, 3):
        verdict = in_groups(wrong)
        assert verdict.verdict == "INVALID"
        assert f"{wrong} groups of 4 operations" in verdict.reasons[0]


def test_each_group_has_a_time() -> None:
    assert in_groups(2, timed=1).verdict == "INVALID"


def test_an_operation_that_failed_takes_its_group_with_it() -> None:
    assert in_groups(1, attempts=11).verdict == "VALID"
    assert in_groups(3, attempts=11).verdict == "INVALID"
