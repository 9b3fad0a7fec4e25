"""Cases for the times of groups: records of the tape that stay together in one lane."""

from cachemark.checks.conformance.cases import ConformanceCase, claiming, every
from cachemark.checks.conformance.proxy import proxied
from cachemark.checks.conformance.slice_driver import (
    MAX_SLICES,
    begin,
    end,
    play_late_slice,
    play_until_counted,
)
from cachemark.checks.conformance.tape_values import tape_values
from cachemark.checks.conformance.worker_driver import WorkerDriver, expect, expect_equal
from cachemark.endpoints.servers import RunningServer
from cachemark.model import histogram
from cachemark.model.protocol import Done, RunRequest, Slice, SliceDone
from cachemark.model.protocol_results import Groups

_KEYS = ("--keys", "20", "--size", "30")
_SEQUENCE = (*_KEYS, "--sequence", "set@0 get@0 get@1", "--key-step", "2", "--ops", "60")
_PAIRS = (*_KEYS, "--sequence", "get@0 get@1", "--key-step", "2", "--ops", "60")
_SINGLE = (*_KEYS, "--mix", "get=3,set=1", "--ops", "60")
_LENGTH = 3
# Ten whole groups and two operations of another one.
_OPS = 10 * _LENGTH + 2
_LATE_SLICE, _LATE_S = Slice(length_us=50_000), 0.15


def whole_groups_are_counted_and_timed(
    driver: WorkerDriver, wire: str, server: RunningServer
) -> None:
    """A run of groups, at each supported depth: a group that its end cuts does not count."""
    shapes = [{}, {"threads": 2, "connections": 2}] if driver.can("threads") else [{}]
    shapes += [{"depth": 4}] if driver.can("pipeline") else []
    for shape in shapes:
        callers = shape.get("threads", 1)
        driver.begin(wire, server.addresses, _SEQUENCE, **shape)
        driver.play(RunRequest(phase="warmup", ops=_LENGTH))
        done = driver.play(RunRequest(phase="measure", ops=callers * _OPS))
        groups = _groups(done)
        expect_equal(groups.ok, callers * 10, f"groups of {callers} callers")
        _check_times(done, groups, callers, shape.get("depth", 1))
    driver.begin(wire, server.addresses, _SINGLE)
    done = driver.play(RunRequest(phase="measure", ops=20))
    expect_equal(done.groups, None, "groups of a tape without them")


def a_group_with_a_wrong_value_is_no_group(
    driver: WorkerDriver, wire: str, server: RunningServer
) -> None:
    """A group with one failed operation does not count, even if all others were right."""
    with proxied(server.addresses[0]) as proxy:
        driver.begin(wire, [proxy.address], _SEQUENCE)
        proxy.values = tape_values(driver.folder / "tape")
        proxy.fault = "corrupt"
        done = driver.play(RunRequest(phase="measure", ops=_OPS))
        expect(done.operations["set"].ok > 0, "no set succeeded")
        expect_equal(_groups(done).ok, 0, "groups whose gets returned wrong values")
        proxy.fault = ""
        done = driver.play(RunRequest(phase="measure", ops=_OPS))
        expect_equal(_groups(done).ok, 10, "groups of a run after it")


def a_group_ends_with_its_slice(driver: WorkerDriver, wire: str, server: RunningServer) -> None:
    """Two late slices play one group's two operations: it is not counted. Later ones are."""
    with proxied(server.addresses[0]) as proxy:
        begin(driver, wire, [proxy.address], _PAIRS, proxy)
        cut: list[SliceDone] = []
        while sum(one.ops for one in cut) < 2:  # a busy machine may play nothing in some
            cut.append(play_late_slice(driver, proxy, _LATE_SLICE, _LATE_S))
            expect(len(cut) < MAX_SLICES, "nothing is counted")
        done = end(driver, cut)
        expect_equal(max(one.ops for one in cut), 1, "operations of a late slice")
        expect_equal(_groups(done).ok, 0, "groups that the end of a slice has cut")
        begin(driver, wire, [proxy.address], _PAIRS, proxy)
        slices = play_until_counted(driver, Slice(length_us=20_000, lead_in_us=5_000))
        done = end(driver, slices)
        groups, ops = _groups(done), sum(one.ops for one in slices)
        # The lead-in and the end of each slice cut a group each.
        expect(
            ops - 2 * len(slices) <= 2 * groups.ok <= ops,
            f"{groups.ok} groups of two in {ops} operations of {len(slices)} slices",
        )


_GROUPS = claiming("groups")
CASES = (
    ConformanceCase(whole_groups_are_counted_and_timed, _GROUPS, in_process=True),
    ConformanceCase(a_group_with_a_wrong_value_is_no_group, _GROUPS),
    ConformanceCase(a_group_ends_with_its_slice, every(_GROUPS, claiming("slices"))),
)


def _groups(done: Done) -> Groups:
    expect(done.groups is not None, "no groups, though it has the capability `groups`")
    return done.groups or Groups(length=2, ok=0)


def _check_times(done: Done, groups: Groups, callers: int, depth: int) -> None:
    """Groups take as long as their operations, and not longer than the window."""
    expect_equal(groups.length, _LENGTH, "the length of a group")
    times = histogram.decode(groups.time or "")
    expect_equal(times.count, groups.ok, "the count of the groups' histogram")
    kinds = list(done.operations.values())
    longest_ns = max(histogram.decode(kind.service or "").max() for kind in kinds)
    busy_ns = sum(kind.busy_ns for kind in kinds)
    total_ns = times.mean() * times.count
    # All operations but two of each caller are in a group. A bucket is a thousandth wide.
    room_ns = 0.002 * total_ns + groups.ok
    least_ns = busy_ns / depth - 2 * callers * longest_ns - room_ns
    expect(total_ns >= least_ns, f"groups of {total_ns:,.0f} ns, operations of {busy_ns:,} ns")
    most_ns = callers * depth * done.elapsed_ns + room_ns
    expect(total_ns <= most_ns, f"groups of {total_ns:,.0f} ns in {done.elapsed_ns:,} ns")
