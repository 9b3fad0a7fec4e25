"""Cases for slices: short parts of the tape, which a worker plays in turn with other workers.

A proxy shows which commands a slice sent. Delays of the proxy are longer than the slices, so no
case depends on the speed of the machine.
"""

import os
import signal
import time

import msgspec

from cachemark.checks.conformance.cases import (
    TEST_DOUBLE,
    ConformanceCase,
    but,
    claiming,
    claiming_one_of,
    each,
    every,
)
from cachemark.checks.conformance.proxy import proxied
from cachemark.checks.conformance.slice_driver import (
    KEYS,
    LATE_S,
    MAX_SLICES,
    Gap,
    begin,
    begin_again,
    check_commands,
    end,
    expect_refused,
    play_late_slice,
    play_slice,
    play_until_counted,
    play_without_cpu,
    slice_answer,
    slice_done,
)
from cachemark.checks.conformance.tape_values import tape_values
from cachemark.checks.conformance.worker_driver import ANSWER_S, WorkerDriver, expect, expect_equal
from cachemark.endpoints.servers import RunningServer
from cachemark.model.protocol import EndSlices, RunRequest, Slice, SliceDone, Stop

_RECORDS = 60
_TAPE = ("--keys", str(KEYS), "--size", "30", "--mix", "get=3,set=1", "--ops", str(_RECORDS))
_GETS = (*_TAPE[:4], "--mix", "get=1", "--ops", str(_RECORDS))
_QUIET_SETS = (*_TAPE[:4], "--mix", "set_noreply=1", "--ops", str(_RECORDS))
# 200 records in half a second: 40 in a slice of 100 ms, of which 30 are after a quarter of it.
_OPEN = (*_TAPE[:6], "--schedule", "uniform", "--rate", "400", "--duration", "500ms")
_OPEN_SLICE = Slice(length_us=100_000, lead_in_us=25_000)
_OPEN_SLICES, _OPEN_COUNTED, _OPEN_ALL = 5, 150, 200
_TRIES = 4
_KILLED, _MOST_KILLED = Slice(length_us=50_000), 40
_SHORT = Slice(length_us=5_000, lead_in_us=1_000)
_EMPTY = Slice(length_us=0)
_CPU_COMES_LATE = Gap(lead_in=0.2, until=2, length=2.5)
_CPU_COMES_TOO_LATE = Gap(lead_in=0.2, until=1, length=0.6)


def slices_play_on_without_gap_or_repeat(
    driver: WorkerDriver, wire: str, server: RunningServer
) -> None:
    """Slice by slice the commands of the tape are sent, each once, and all of them are counted."""
    with proxied(server.addresses[0]) as proxy:
        begin(driver, wire, [proxy.address], _TAPE, proxy)
        slices = [play_slice(driver, _EMPTY)]
        expect_equal(slices[0], slice_done(), "the answer to a slice of length 0")
        while len(proxy.commands) < 2.5 * _RECORDS and len(slices) < MAX_SLICES:
            slices.append(play_slice(driver, _SHORT))
            slices.append(play_slice(driver, Slice(length_us=5_000)))
        end(driver, slices, proxy)
        check_commands(proxy, driver)


def the_lead_in_ends_with_a_completion(
    driver: WorkerDriver, wire: str, server: RunningServer
) -> None:
    """The first completion after the lead-in is its last operation; counting begins with it."""
    with proxied(server.addresses[0]) as proxy:
        begin(driver, wire, [proxy.address], _GETS, proxy)
        slices: list[SliceDone] = []
        # A worker that got no CPU in the lead-in has none: then the next one is longer.
        for longer in range(_TRIES):
            request = Slice(length_us=200_000 << longer, lead_in_us=100_000 << longer)
            slices.append(play_late_slice(driver, proxy, request, LATE_S * 2**longer))
            if slices[-1].lead_in_ops:
                break
        expect_equal(
            slices[-1], slice_done(lead_in_ops=1), "a slice whose first reply comes after its end"
        )
        counted = play_late_slice(driver, proxy, Slice(length_us=200_000))
        expect_equal(counted.lead_in_ops, 0, "lead_in_ops of a slice without a lead-in")
        expect_equal(counted.ops, 1, "ops of a slice whose first reply comes after its end")
        expect(
            counted.elapsed_ns >= LATE_S * 1e9 * 0.98,
            f"elapsed_ns {counted.elapsed_ns}, though the reply came after {LATE_S} s",
        )
        # Its only completion comes after the middle. Without a CPU until then, the half is empty.
        half = counted.half_ops, counted.half_ns
        expect(half in {(1, counted.elapsed_ns), (0, 100_000_000)}, f"the first half of {counted}")
        end(driver, [*slices, counted])
        check_commands(proxy, driver)


def a_slice_is_counted_in_two_halves(
    driver: WorkerDriver, wire: str, server: RunningServer
) -> None:
    """Both halves have operations, also of several callers; together they are the slice."""
    shapes = [{}, *([{"threads": 2, "connections": 2}] if driver.can("threads") else [])]
    shapes += [{"depth": 4}] if driver.can("pipeline") else []
    request = Slice(length_us=20_000, lead_in_us=4_000)
    for shape in shapes:
        begin(driver, wire, server.addresses, _TAPE, None, **shape)
        slices: list[SliceDone] = []
        while not any(
            0 < one.half_ops < one.ops and 8_000_000 <= one.half_ns < one.elapsed_ns
            for one in slices
        ):
            slices.append(play_slice(driver, request))
            expect(
                len(slices) < MAX_SLICES, f"no slice has operations in both halves: {slices[-1]}"
            )
        end(driver, slices)


def a_slice_of_lead_in_counts_nothing(
    driver: WorkerDriver, wire: str, server: RunningServer
) -> None:
    """Slices that are all lead-in, which are a warm-up, at each supported depth."""
    for depth in (1, 4) if driver.can("pipeline") else (1,):
        with proxied(server.addresses[0]) as proxy:
            begin(driver, wire, [proxy.address], _TAPE, proxy, depth=depth)
            slices = [
                play_slice(driver, Slice(length_us=20_000, lead_in_us=20_000)) for _ in range(3)
            ]
            for one in slices:
                expect_equal(
                    one, slice_done(lead_in_ops=one.lead_in_ops), "a slice that is all lead-in"
                )
            end(driver, slices, proxy)


def slices_of_several_operations_at_once(
    driver: WorkerDriver, wire: str, server: RunningServer
) -> None:
    """Several callers, or a depth of 4: slices lose no operation and count none twice."""
    shapes = [{"threads": 2, "connections": 2}] if driver.can("threads") else []
    shapes += [{"depth": 4}] if driver.can("pipeline") else []
    for shape in shapes:
        with proxied(server.addresses[0]) as proxy:
            begin(driver, wire, [proxy.address], _TAPE, proxy, **shape)
            slices = play_until_counted(driver, _SHORT)
            end(driver, slices, proxy)


def slices_without_replies_end_with_a_barrier(
    driver: WorkerDriver, wire: str, server: RunningServer
) -> None:
    """When `slice_done` comes, the server has executed all of the slice's operations."""
    begin(driver, wire, server.addresses, _QUIET_SETS)
    before = int(server.stats()["cmd_set"])
    slices: list[SliceDone] = []
    played = 0
    while not (slices and played) or len(slices) < 5:
        slices.append(play_slice(driver, _SHORT))
        played += slices[-1].ops + slices[-1].errors + slices[-1].lead_in_ops
        expect(len(slices) < MAX_SLICES, "nothing is played")
        expect_equal(int(server.stats()["cmd_set"]) - before, played, "cmd_set after a slice")
    done = end(driver, slices)
    playing = sum(one.ops + one.errors + one.lead_in_ops > 0 for one in slices)
    expect(done.barriers >= playing, f"{done.barriers} barriers after {playing} slices")


def slices_of_an_open_loop(driver: WorkerDriver, wire: str, server: RunningServer) -> None:
    """The tape's time stands still between slices, and the intended start decides what counts."""
    with proxied(server.addresses[0]) as proxy:
        begin(driver, wire, [proxy.address], _OPEN, proxy)
        slices = [play_slice(driver, _OPEN_SLICE)]
        # Time passes before the next slice: this one waits for its reply.
        slices.append(play_late_slice(driver, proxy, _OPEN_SLICE))
        slices += [play_slice(driver, _OPEN_SLICE) for _ in range(_OPEN_SLICES - 2)]
        done = end(driver, slices)
        check_commands(proxy, driver)
        counted = sum(one.ops + one.errors for one in slices) + done.unsent
        expect_equal(counted, _OPEN_COUNTED, "operations that are counted or unsent")
        lead_in = sum(one.lead_in_ops for one in slices)
        # The first operation is due at once, or after a gap.
        left = _OPEN_ALL - _OPEN_COUNTED
        expect(left - 1 <= lead_in <= left, f"lead_in_ops {lead_in}, expected {left}")
        each_ns = (_OPEN_SLICE.length_us - _OPEN_SLICE.lead_in_us) * 1000
        expect_equal([one.elapsed_ns for one in slices], [each_ns] * _OPEN_SLICES, "elapsed_ns")


def wrong_values_in_slices_are_errors(
    driver: WorkerDriver, wire: str, server: RunningServer
) -> None:
    """A counted operation whose reply is wrong is one of the slice's errors."""
    with proxied(server.addresses[0]) as proxy:
        begin(driver, wire, [proxy.address], _GETS, proxy)
        proxy.values = tape_values(driver.folder / "tape")
        proxy.fault = "corrupt"
        slices = play_until_counted(driver, _SHORT, "errors")
        done = end(driver, slices, proxy)
        wrong = sum(kind.wrong_values for kind in done.operations.values())
        expect_equal(sum(one.errors for one in slices), wrong, "errors of all slices")


def a_server_that_is_killed_between_slices(
    driver: WorkerDriver, wire: str, server: RunningServer
) -> None:
    """Slices without a server end, and their operations are errors, in the lead-in too."""
    begin(driver, wire, server.addresses, _GETS, timeout_ms=1_000)
    slices = play_until_counted(driver, _SHORT)
    before, played = sum(one.ops for one in slices), len(slices)
    expect(server.pid is not None, "the server is not ours")
    os.kill(server.pid or 0, signal.SIGKILL)
    slices.append(play_slice(driver, _KILLED))
    # A worker that gets no CPU in a slice plays nothing.
    while not slices[-1].errors and len(slices) < played + _MOST_KILLED:
        slices.append(play_slice(driver, _KILLED))
    slices.append(play_slice(driver, Slice(length_us=50_000, lead_in_us=25_000)))
    slices.append(play_slice(driver, _KILLED))
    end(driver, slices)
    expect(sum(one.errors for one in slices) > 0, "no operation failed")
    expect_equal(sum(one.ops for one in slices), before, "ok after the kill")


def a_slice_needs_begin_slices(driver: WorkerDriver, wire: str, server: RunningServer) -> None:
    """Before `begin_slices` and after `end_slices` a slice is an error; a run is as ever."""
    with proxied(server.addresses[0]) as proxy:
        driver.prepare(driver.request(wire, [proxy.address], _TAPE))
        expect_refused(driver, _SHORT)
        expect_refused(driver, EndSlices())
        driver.play(RunRequest(phase="prefill"))
        begin_again(driver)
        play_slice(driver, _SHORT)
        begin_again(driver)  # discards what was counted before
        end(driver, [play_slice(driver, _SHORT)])
        expect_refused(driver, _SHORT)
        proxy.commands.clear()
        done = driver.play(RunRequest(phase="measure", ops=10))
        expect_equal(sum(kind.ok for kind in done.operations.values()), 10, "ok of a run after it")
        expect(done.lead_in is None, "a run has a lead_in")
        check_commands(proxy, driver)


def a_stop_ends_a_slice(driver: WorkerDriver, wire: str, server: RunningServer) -> None:
    """A slice ends at a stop, with all operations counted, and the next one plays on."""
    with proxied(server.addresses[0]) as proxy:
        begin(driver, wire, [proxy.address], _GETS, proxy)
        driver.worker.send(Slice(length_us=600_000_000))
        until = time.monotonic() + ANSWER_S
        while not proxy.commands:
            expect(time.monotonic() < until, f"no get came within {ANSWER_S:g} s")
        driver.worker.send(Stop())
        slices = [slice_answer(driver), play_slice(driver, Slice(length_us=20_000))]
        end(driver, slices, proxy)
        check_commands(proxy, driver)


def slices_inside_a_process(driver: WorkerDriver, wire: str, server: RunningServer) -> None:
    """The sums of slices are right for any client, even for a cache inside the process."""
    begin(driver, wire, server.addresses, _TAPE)
    slices = play_until_counted(driver, _SHORT)
    end(driver, slices)


def a_caller_without_a_cpu_counts_from_the_lead_in_on(
    driver: WorkerDriver, wire: str, server: RunningServer
) -> None:
    """Time without a CPU after the lead-in is time of the slice, even if nothing is played."""
    callers = {"threads": 2, "connections": 2} if driver.can("threads") else {}
    begin(driver, wire, server.addresses, _TAPE, None, **callers)
    slices, request = play_without_cpu(driver, _CPU_COMES_LATE)
    late = slices[-1]
    expect_equal(late.lead_in_ops, 0, "lead_in_ops without a CPU in the lead-in")
    counted_ns = 1000 * (request.length_us - request.lead_in_us)
    expect(
        late.elapsed_ns >= counted_ns,
        f"elapsed_ns {late.elapsed_ns} of a counted part of at least {counted_ns} ns",
    )
    answers, request = play_without_cpu(driver, _CPU_COMES_TOO_LATE)
    counted_ns = 1000 * (request.length_us - request.lead_in_us)
    nothing = msgspec.structs.replace(slice_done(), elapsed_ns=counted_ns, half_ns=counted_ns // 2)
    expect_equal(answers[-1], nothing, "the answer to a slice without a CPU")
    end(driver, slices + answers)


_SLICES = claiming("slices")
_SEVERAL = claiming_one_of(
    "threads", "pipeline", otherwise="it has one caller with one operation at a time"
)
CASES = (
    *each(
        slices_play_on_without_gap_or_repeat,
        the_lead_in_ends_with_a_completion,
        a_slice_is_counted_in_two_halves,
        a_slice_of_lead_in_counts_nothing,
        rule=_SLICES,
    ),
    ConformanceCase(slices_of_several_operations_at_once, every(_SLICES, _SEVERAL)),
    ConformanceCase(slices_without_replies_end_with_a_barrier, claiming("slices", "set_noreply")),
    ConformanceCase(slices_of_an_open_loop, claiming("slices", "open_loop")),
    *each(
        wrong_values_in_slices_are_errors,
        a_server_that_is_killed_between_slices,
        a_slice_needs_begin_slices,
        rule=_SLICES,
    ),
    ConformanceCase(
        a_stop_ends_a_slice,
        every(_SLICES, but(TEST_DOUBLE, "it reads a stop once its slice is over")),
    ),
    ConformanceCase(slices_inside_a_process, _SLICES, in_process=True),
    ConformanceCase(a_caller_without_a_cpu_counts_from_the_lead_in_on, _SLICES, in_process=True),
)
