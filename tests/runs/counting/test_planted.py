"""Copies of pymemcache that do a little more for each operation: the counts and rules show it."""

from __future__ import annotations

import msgspec
import pytest

from cachemark.analysis.why.report import Difference, differences
from cachemark.host import process
from cachemark.host.system_calls import missing_reason
from cachemark.model.counts import CountedWork, Counts
from cachemark.model.experiment import Keys, Load, Values, Workload
from cachemark.runs.counting.counting import CountingPlan, count
from tests.runs.counting.planted_copies import CHANGES, changed_python, original, planted

pytestmark = pytest.mark.skipif(bool(missing_reason()), reason="apt-get install strace")

UNCHANGED = "unchanged"

# What each change makes of the counts. A socket of Python with a time-out polls before each send
# and each receive.
MORE = {
    "two writes": {"sends": 1, "polls": 1, "recvs": 0, "turns": 0, "bytes_in": 0},
    "options": {"options": 2, "sends": 0, "recvs": 0, "polls": 0, "files": 0, "others": 0},
    "a file": {"files": 1, "sends": 0, "recvs": 0, "polls": 0, "options": 0},
    "another request": {"sends": 1, "recvs": 1, "turns": 1, "segments_in": 1, "bytes_in": 4},
    "a connection": {"connects": 1, "connections": 1, "sends": 0, "recvs": 0, "bytes_in": 0},
    "another thread": {"sends": 0, "recvs": 0, "turns": 0, "waiting_threads": 1},
    "polls": {"polls": 3, "sends": 0, "recvs": 0},
    "an empty read": {"recvs": 1, "empty_recvs": 1, "sends": 0, "polls": 0, "turns": 0},
    "a lock": {"futexes": 1, "switches": 1, "sends": 0, "polls": 0, "others": 0},
    "other calls": {"others": 3, "sends": 0, "polls": 0, "files": 0, "options": 0},
    "a fault": {"faults": 1, "sends": 0, "polls": 0, "memory": 0},
}


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, CountedWork]:
    """All copies, counted once: with one repetition, counts have no error."""
    spec = original("python")
    command = changed_python(spec, tmp_path_factory.mktemp("planted"))
    copies = [planted(spec, command, name) for name in ("", *MORE)]
    clients = [msgspec.structs.replace(spec, text=UNCHANGED), *copies]
    plan = CountingPlan(
        clients=clients,
        workload=Workload(
            name="get", mix={"get": 1}, keys=Keys(count=50, length="20"), values=Values(size="100")
        ),
        load=Load(name="one-caller"),
        repeat=1,
    )
    found = count(plan, process.binary_path(), lambda _: None)
    return {each.client: each for each in found.works}


def counts_of(work: CountedWork) -> Counts:
    assert not work.failure
    (counts,) = work.repetitions
    return counts


def difference(counted: dict[str, CountedWork], name: str) -> Difference:
    (found,) = differences([counted[UNCHANGED], counted[name]])
    return found


def test_counts_of_a_get_are_those_of_the_text_protocol(counted: dict[str, CountedWork]) -> None:
    counts = counts_of(counted[UNCHANGED])
    key, value = 20, 100
    assert counts.bytes_in == len("get \r\n") + key
    assert counts.bytes_out == len("VALUE  0 100\r\n\r\nEND\r\n") + key + value
    assert (counts.turns, counts.pieces, counts.connections) == (1, 1, 0)
    assert (counts.segments_in, counts.segments_out) == (1, 1)
    # One send and one receive, and a poll before each of them.
    assert (counts.sends, counts.full_recvs, counts.polls) == (1, 1, 2)
    assert (counts.connects, counts.threads) == (0, 1)
    # It waits for the reply, unless the server was faster.
    assert counts.switches == pytest.approx(1, abs=0.4)
    assert (counts.cpu_us or 0) > 0


def test_cpu_time_is_in_own_code_and_in_the_kernel(counted: dict[str, CountedWork]) -> None:
    # The kernel samples the split: on a busy machine few samples are of one copy.
    copies = [counts_of(each) for each in counted.values()]
    assert sum(each.user_us or 0 for each in copies) > 0
    assert sum(each.system_us or 0 for each in copies) > 0


@pytest.mark.parametrize("name", MORE)
def test_a_planted_difference_is_counted_and_named_first(
    name: str, counted: dict[str, CountedWork]
) -> None:
    mine, others = counts_of(counted[name]), counts_of(counted[UNCHANGED])
    more = {figure: getattr(mine, figure) - getattr(others, figure) for figure in MORE[name]}
    assert more == pytest.approx(MORE[name], abs=0.2)
    assert difference(counted, name).findings[0].cause == CHANGES[name].cause


def test_the_unchanged_library_differs_from_itself_in_nothing(
    counted: dict[str, CountedWork],
) -> None:
    found = difference(counted, "the same again")
    assert (found.findings, found.findings_of_base) == ([], [])
