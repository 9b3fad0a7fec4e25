"""The rules of causes.toml on invented counts."""

from __future__ import annotations

import re

import msgspec
import pytest

from cachemark.analysis.why.causes import causes, findings
from cachemark.analysis.why.report import differences
from cachemark.model.counts import CountedWork, Counts, UnitCosts

PLAIN = Counts(
    threads=1.0,
    sends=1.0, recvs=1.0, empty_recvs=0.0, polls=0.0, futexes=0.0, timers=0.0, options=0.0,
    connects=0.0, wakes=0.0, memory=0.0, files=0.0, others=0.0, connections=0.0, turns=1.0,
    pieces=1.0, gap_us=0.0, bytes_in=30.0, bytes_out=130.0, segments_in=1.0, segments_out=1.0,
    acknowledgements=0.0, retransmitted=0.0, allocation_us=0.0,
    user_us=10.0, system_us=15.0, waiting_us=30.0, switches=1.0, preemptions=0.0,
    waiting_threads=1.0, faults=0.0,
    allocations=4.0, allocated_bytes=300.0, copies=1.0, copied_bytes=100.0, collections=0.1,
    collection_us=0.2,
)  # fmt: skip


def counted(client: str, kind: str = "get", /, noise: float = 0.0, **more: float) -> CountedWork:
    """Three repetitions; `more` is what the client has beyond PLAIN, `noise` that of its polls."""
    changed = {name: getattr(PLAIN, name) + value for name, value in more.items()}
    counts = msgspec.structs.replace(PLAIN, **changed)
    repetitions = [
        msgspec.structs.replace(counts, polls=(counts.polls or 0) + noise * step)
        for step in (-1, 0, 1)
    ]
    return CountedWork(client=client, kind=kind, repetitions=repetitions)


def earlier(of: CountedWork) -> CountedWork:
    """The same of an earlier answer."""
    return msgspec.structs.replace(of, client=f"before.json: {of.client}", past_client=of.client)


SIGNATURES: list[tuple[str, str, dict[str, float]]] = [
    ("nagle", "get", {"gap_us": 40_000, "pieces": 1, "sends": 1, "segments_in": 1}),
    ("connection per call", "get", {"connects": 1, "connections": 1, "options": 3}),
    ("single gets", "mget", {"turns": 49, "sends": 49, "recvs": 49}),
    ("more round trips", "get", {"turns": 1, "sends": 1, "recvs": 1}),
    ("thread hand-over", "get", {"waiting_threads": 1, "switches": 2, "futexes": 4}),
    ("request in parts", "set", {"sends": 2, "pieces": 2}),
    ("reply in parts", "get", {"recvs": 20}),
    ("empty reads", "get", {"recvs": 1, "empty_recvs": 1}),
    ("poll before each read", "get", {"polls": 1}),
    ("timer per call", "get", {"timers": 1}),
    ("options per call", "get", {"options": 1}),
    ("locks", "get", {"futexes": 2}),
    ("wake-ups", "get", {"wakes": 2}),
    ("waits", "get", {"switches": 1}),
    ("copies", "get", {"copies": 1, "copied_bytes": 100, "allocated_bytes": 100, "allocations": 1}),
    ("garbage", "get", {"allocations": 10, "allocated_bytes": 900}),
    ("large garbage", "get", {"allocations": 1, "allocated_bytes": 4000}),
    ("collections", "get", {"collection_us": 2, "collections": 1}),
    ("files", "get", {"files": 1}),
    ("fresh memory", "get", {"memory": 2}),
    ("page faults", "get", {"faults": 2}),
    ("other calls", "get", {"others": 2}),
    ("longer requests", "get", {"bytes_in": 24}),
    ("longer replies", "get", {"bytes_out": 24}),
]


@pytest.mark.parametrize(("cause", "kind", "more"), SIGNATURES)
def test_each_cause_is_named_first_by_its_signature(
    cause: str, kind: str, more: dict[str, float]
) -> None:
    found = findings(counted("a", kind, **more), counted("b", kind))
    assert (found[0].cause, found[0].client, found[0].other) == (cause, "a", "b")
    assert not findings(counted("b", kind), counted("a", kind, **more))


def test_every_rule_has_a_signature_and_names_figures() -> None:
    assert [rule.name for rule in causes()] == [name for name, _, _ in SIGNATURES]
    figures = set(Counts.__struct_fields__) | {"full_recvs", "other_bytes"}
    for rule in causes():
        assert {rule.figure, *rule.needs, *rule.covers} <= figures, rule.name


def test_the_same_counts_have_no_findings() -> None:
    assert findings(counted("a"), counted("b")) == []


def test_a_round_trip_is_not_named_twice() -> None:
    more = {"turns": 1.0, "sends": 1.0, "recvs": 1.0, "bytes_in": 30.0}
    assert [each.cause for each in findings(counted("a", "get", **more), counted("b"))] == [
        "more round trips"
    ]


def test_a_copied_long_value_is_not_named_as_garbage_too() -> None:
    more = {"copies": 1.0, "copied_bytes": 9e3, "allocated_bytes": 9e3, "allocations": 1.0}
    found = findings(counted("a", "get", **more), counted("b"))
    assert [each.cause for each in found] == ["copies"]


def test_objects_explain_the_bytes_that_they_usually_have() -> None:
    few = findings(counted("a", allocations=10, allocated_bytes=900), counted("b"))
    assert [each.cause for each in few] == ["garbage"]
    many = findings(counted("a", allocations=10, allocated_bytes=9000), counted("b"))
    assert [each.cause for each in many] == ["garbage", "large garbage"]
    assert many[1].words == "allocates 8,360 more bytes, copies of values aside"


def test_a_part_that_no_rule_explains_is_named_by_number() -> None:
    (first, second) = findings(counted("a", turns=1, sends=3), counted("b"))
    assert (first.cause, second.cause) == ("more round trips", "request in parts")
    assert (second.count, second.other_count, second.more.value) == (4, 1, 2)
    assert second.words == "makes 2 more writes to the socket"


def test_one_call_more_is_one() -> None:
    for rule in causes():
        counts_things = re.search(r"\{more\} more (\w+ )?\{\w[^|}]*\|\w[^|}]*\}", rule.words)
        assert counts_things or (rule.more > 1 or rule.figure.endswith("_us")), rule.words
    (read,) = findings(counted("a", recvs=1), counted("b"))
    assert read.words == "makes 1 more read from the socket"
    (rate,) = findings(counted("a", recvs=1.3), counted("b"))
    assert rate.words == "makes 1.3 more reads from the socket"


def test_the_dearest_cause_is_first_and_one_without_cost_stays() -> None:
    units = [UnitCosts(sends=2.0, full_recvs=1.0, polls=0.5)] * 3
    (found,) = differences(
        [counted("a"), counted("b", turns=1, sends=18, recvs=1, gap_us=40_000, pieces=1)], units
    )
    causes_found = [each.cause for each in found.findings]
    assert causes_found == ["nagle", "request in parts", "more round trips"]


def test_polls_before_many_reads_are_no_cause() -> None:
    units = [UnitCosts(full_recvs=0.3, polls=0.4)] * 3
    (found,) = differences([counted("a"), counted("b", recvs=9, polls=9)], units)
    assert [each.cause for each in found.findings] == ["reply in parts"]
    (found,) = differences([counted("a"), counted("b", recvs=1, polls=3)], units)
    assert [(each.cause, each.more.value) for each in found.findings] == [
        ("poll before each read", 2),
        ("reply in parts", 1),
    ]


def test_nothing_is_said_below_the_error() -> None:
    assert findings(counted("a", polls=2), counted("b"))
    assert findings(counted("a", noise=2, polls=2), counted("b")) == []


def test_a_figure_that_was_not_counted_says_nothing() -> None:
    whole = counted("a", polls=3)
    without = [msgspec.structs.replace(each, polls=None) for each in whole.repetitions]
    one = msgspec.structs.replace(whole, repetitions=without)
    assert findings(one, counted("b")) == findings(counted("b"), one) == []


def test_clients_are_compared_with_the_first_by_kind() -> None:
    found = differences(
        [counted("a"), counted("b", polls=2), counted("a", "set"), counted("b", "set", sends=1)]
    )
    assert [(each.kind, each.client, each.base) for each in found] == [
        ("get", "b", "a"),
        ("set", "b", "a"),
    ]
    assert [each.findings[0].cause for each in found] == [
        "poll before each read",
        "request in parts",
    ]


def test_a_client_is_compared_with_itself_in_the_past() -> None:
    past = [earlier(counted("a")), earlier(counted("b", polls=5))]
    found = differences([*past, counted("b", polls=2), counted("c", sends=1)])
    assert [(each.client, each.base) for each in found] == [
        ("b", "before.json: b"),
        ("c", "before.json: a"),
    ]
    assert [each.cause for each in found[0].findings_of_base] == ["poll before each read"]


def test_a_client_that_failed_is_compared_with_none() -> None:
    failed = CountedWork(client="a", kind="get", failure="it is not set up")
    assert differences([failed, counted("b", polls=2)]) == []
    assert differences([counted("b"), failed]) == []


def test_an_in_process_cache_is_not_compared_with_servers_clients() -> None:
    whole = counted("b", polls=2)
    without = [msgspec.structs.replace(each, turns=None) for each in whole.repetitions]
    local = msgspec.structs.replace(whole, repetitions=without)
    assert differences([counted("a"), local]) == differences([local, counted("a")]) == []
    other = msgspec.structs.replace(local, client="c")
    assert len(differences([local, other])) == 1


def test_allocations_have_a_cost_where_malloc_makes_them() -> None:
    units = [UnitCosts(allocations=0.02)] * 3
    more = {"allocations": 10.0, "user_us": 1.0}
    priced = findings(counted("rust/b", **more), counted("c/a"), units)
    assert [(each.cause, each.cost_us) for each in priced] == [("garbage", None)]
    assert [each.own_us.value for each in priced if each.own_us] == [pytest.approx(0.2)]
    others = findings(counted("go/b", **more), counted("c/a"), units)
    assert [each.own_us for each in others] == [None]


def test_allocations_of_one_runtime_have_its_cost() -> None:
    more = {"allocations": 10.0, "user_us": 1.0, "allocation_us": 0.05}
    (priced,) = findings(counted("go/b", **more), counted("go/a"))
    assert priced.own_us
    assert priced.own_us.value == pytest.approx(0.5)
    (past,) = findings(counted("go/b", **more), earlier(counted("go/a")))
    assert past.own_us == priced.own_us
    (dear,) = findings(counted("go/b", **{**more, "user_us": 0.1}), counted("go/a"))
    assert dear.own_us is None


def test_costs_of_allocations_exceed_no_difference_together() -> None:
    more = {"copies": 1.0, "copied_bytes": 100.0, "allocations": 4.0, "allocation_us": 0.05}
    both = findings(counted("go/b", **more, user_us=0.3), counted("go/a"))
    assert [each.own_us is not None for each in both] == [True, True]
    # 0.05 µs of one and 0.15 µs of three fit by themselves.
    none = findings(counted("go/b", **more, user_us=0.18), counted("go/a"))
    assert [each.own_us for each in none] == [None, None]
