"""Cases with failing servers and stops: each failure is counted as its kind, and nothing hangs."""

import os
import signal
import socket
import time

from cachemark.checks.conformance.cases import TEST_DOUBLE, ConformanceCase, but, each
from cachemark.checks.conformance.proxy import BAD_REQUEST, OUT_OF_MEMORY, ReplyFault, proxied
from cachemark.checks.conformance.tape_values import tape_values, told_generations
from cachemark.checks.conformance.worker_driver import (
    ANSWER_S,
    CaseFailedError,
    NotApplicableError,
    WorkerDriver,
    exits,
    expect,
    expect_equal,
)
from cachemark.endpoints.servers import RunningServer, parse_spec, running
from cachemark.model import histogram
from cachemark.model.protocol import Done, Failure, Operation, Ready, RunRequest, Stop

TIMEOUT_MS = 1000
_KEYS = 20
_GETS = ("--keys", str(_KEYS), "--size", "30", "--mix", "get=1", "--ops", "100")
_OPS = 400
_WRITES = (
    *("--keys", "20", "--size", "30", "--mix", "get=1,set=1"),
    *("--ops", str(_OPS), "--generations", "1"),
)
# On a busy machine the kill may come after the end of the window; then the next one is longer.
_KILL_WINDOWS_MS = (500, 2000, 8000)


def a_wrong_byte_is_a_wrong_value(driver: WorkerDriver, wire: str, server: RunningServer) -> None:
    """A reply whose value differs from the stored one is a wrong value, not a hit or a miss."""
    with proxied(server.addresses[0]) as proxy:
        _prepared(driver, wire, proxy.address)
        proxy.values = tape_values(driver.folder / "tape")
        proxy.fault = "corrupt"
        result = _gets(driver.play(RunRequest(phase="measure", ops=50)))
    expect_equal(result.errors, {}, "errors")
    expect_equal((result.attempts, result.wrong_values), (50, 50), "attempts and wrong values")
    expect_equal(
        (result.ok, result.hits, result.misses, result.value_bytes),
        (0, 0, 0, 0),
        "ok, hits, misses",
    )


def other_flags_are_a_wrong_value(driver: WorkerDriver, wire: str, server: RunningServer) -> None:
    """A reply with the right bytes but wrong flags is no hit."""
    if driver.spec.options.get("profile", "common") != "common":
        raise NotApplicableError("its library has flags of its own")
    with proxied(server.addresses[0]) as proxy:
        _prepared(driver, wire, proxy.address)
        right = _gets(driver.play(RunRequest(phase="measure", ops=50)))
        expect_equal((right.hits, right.wrong_values), (50, 0), "hits with the flags as stored")
        proxy.fault = "flags"
        result = _gets(driver.play(RunRequest(phase="measure", ops=50)))
    expect_equal((result.ok, result.hits, result.misses), (0, 0, 0), "ok, hits, misses")
    # Some libraries raise an error themselves.
    failed = result.wrong_values + sum(result.errors.values())
    expect_equal((result.attempts, failed), (50, 50), "attempts, and wrong values or errors")


def a_lost_write_is_a_wrong_value(driver: WorkerDriver, wire: str, server: RunningServer) -> None:
    """After a lost write, a read brings an older value, which is wrong if the tape can tell."""
    if driver.spec.options.get("profile", "common") != "common":
        raise NotApplicableError("its library may send a write again, which may come late")
    tape = driver.tape(*_WRITES)
    told = told_generations(tape, _OPS)
    expected: tuple[tuple[ReplyFault, int], ...] = (("lost", told), ("", 0))
    for fault, wrong in expected:
        with proxied(server.addresses[0]) as proxy:
            driver.begin(wire, [proxy.address], _WRITES)
            proxy.fault = fault
            done = driver.play(RunRequest(phase="measure", ops=_OPS))
        gets, sets = _gets(done), done.operations["set"]
        expect_equal((gets.errors, sets.errors), ({}, {}), "errors")
        expect_equal(
            gets.wrong_values, wrong, f"wrong values of a server that is {fault or 'right'}"
        )
        expect_equal((gets.ok, sets.ok), (gets.attempts - wrong, sets.attempts), "ok")


def silence_is_a_timeout_and_no_miss(
    driver: WorkerDriver, wire: str, server: RunningServer
) -> None:
    """If the server does not answer, the operation ends after `timeout_ms` as a timeout error."""
    with proxied(server.addresses[0]) as proxy:
        _prepared(driver, wire, proxy.address, timeout_ms=TIMEOUT_MS)
        proxy.fault = "silence"
        done = driver.play(RunRequest(phase="measure", duration_ms=TIMEOUT_MS), 30)
    result = _gets(done)
    expect_equal((result.ok, result.hits, result.misses), (0, 0, 0), "ok, hits, misses")
    expect(result.errors.get("timeout", 0) >= 1, f"errors {result.errors}")
    expect_equal(result.attempts, sum(result.errors.values()), "attempts")
    if driver.ready.client != TEST_DOUBLE:
        expect(result.response, "no response histogram, though a timeout counts as it lasted")
        longest = histogram.decode(result.response or "").max()
        expect(longest >= TIMEOUT_MS * 1e6 * 0.99, f"the timeout lasted {longest / 1e6:.0f} ms")


def a_late_reply_answers_no_other_call(
    driver: WorkerDriver, wire: str, server: RunningServer
) -> None:
    """A reply that comes after its time-out must not answer a later call on the connection."""
    with proxied(server.addresses[0]) as proxy:
        _prepared(driver, wire, proxy.address, timeout_ms=TIMEOUT_MS)
        proxy.fault, proxy.late_s = "late", 1.5 * TIMEOUT_MS / 1000
        result = _gets(driver.play(RunRequest(phase="measure", ops=20), 30))
    expect_equal(
        (result.attempts, result.misses, result.wrong_values),
        (20, 0, 0),
        "attempts, misses, wrong values",
    )
    expect(result.errors, "no operation failed")
    expect_equal(result.hits, 20 - sum(result.errors.values()), "hits")


def an_error_reply_is_an_error(driver: WorkerDriver, wire: str, server: RunningServer) -> None:
    """An error reply to a read counts as an error, not as a miss."""
    with proxied(server.addresses[0]) as proxy:
        _prepared(driver, wire, proxy.address, timeout_ms=TIMEOUT_MS)
        proxy.fault = "error"
        result = _gets(driver.play(RunRequest(phase="measure", ops=3), 30))
    expect_equal(
        (result.ok, result.misses, result.hits, result.wrong_values),
        (0, 0, 0, 0),
        "ok, misses, hits",
    )
    expect_equal((result.attempts, sum(result.errors.values())), (3, 3), "attempts and errors")


def an_error_reply_counts_as_its_kind(
    driver: WorkerDriver, wire: str, server: RunningServer
) -> None:
    """Each error has its fault kind: docs/fault-kinds.md lists the server's texts and statuses."""
    for kind, error in (("server", OUT_OF_MEMORY), ("client", BAD_REQUEST)):
        with proxied(server.addresses[0]) as proxy:
            _prepared(driver, wire, proxy.address)
            proxy.fault, proxy.error = "error", error
            result = _gets(driver.play(RunRequest(phase="measure", ops=1), 30))
        expect_equal(result.errors, {kind: 1}, f"the errors of {error.line.decode()!r}")


def no_server_is_an_error(driver: WorkerDriver, wire: str, _server: RunningServer) -> None:
    """Without a server, the answer to `prepare` is a connect error that names the address."""
    with socket.socket() as taken:  # bound, but not listening
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        answer = driver.ask(driver.request(wire, [address], _GETS, timeout_ms=TIMEOUT_MS))
    expect(isinstance(answer, Failure), f"prepare was answered by {answer}")
    if isinstance(answer, Failure):
        expect_equal(answer.kind, "connect", "the kind of error")
        result = address in answer.text or driver.ready.client == TEST_DOUBLE
        expect(result, f"no address in {answer.text!r}")


def a_server_that_is_killed(driver: WorkerDriver, wire: str, server: RunningServer) -> None:
    """Operations before the kill count; those after it are errors, not misses."""
    result = _played_until_killed(driver, wire, server, _KILL_WINDOWS_MS[0])
    for longer_ms in _KILL_WINDOWS_MS[1:]:
        if not result.errors:
            with running(parse_spec("memcached:threads=1,memory=16")) as another:
                result = _played_until_killed(driver, wire, another, longer_ms)
    expect(result.ok > 0, "nothing was done before")
    expect_equal(
        (result.hits, result.misses, result.wrong_values),
        (result.ok, 0, 0),
        "hits, misses, wrong values",
    )
    failed = sum(result.errors.values())
    expect_equal(failed, result.attempts - result.ok, "errors")
    expect(failed > 0, "no operation failed")


def _played_until_killed(
    driver: WorkerDriver, wire: str, server: RunningServer, window_ms: int
) -> Operation:
    """The gets of a window in which the server is killed."""
    _prepared(driver, wire, server.addresses[0], timeout_ms=TIMEOUT_MS)
    before = int(server.stats()["cmd_get"])  # some libraries try a get when they connect
    driver.worker.send(RunRequest(phase="measure", duration_ms=window_ms))
    _until_it_plays(server, before)
    expect(server.pid is not None, "the server is not ours")
    os.kill(server.pid or 0, signal.SIGKILL)
    return _gets(driver.finish(30))


def a_stop_ends_a_run(driver: WorkerDriver, wire: str, server: RunningServer) -> None:
    """A run ends at a stop, with all operations counted, and another one may follow."""
    _prepared(driver, wire, server.addresses[0])
    before = int(server.stats()["cmd_get"])
    driver.worker.send(RunRequest(phase="measure", duration_ms=600_000))
    _until_it_plays(server, before)
    driver.worker.send(Stop())
    ok = _gets(driver.finish(30)).ok
    expect_equal(ok, int(server.stats()["cmd_get"]) - before, "ok, against the server's")
    again = driver.play(RunRequest(phase="measure", ops=10))
    expect_equal(_gets(again).ok, 10, "ok of the run after it")


def the_end_of_stdin_ends_the_process(
    driver: WorkerDriver, wire: str, server: RunningServer
) -> None:
    """A worker ends if its caller has exited."""
    _prepared(driver, wire, server.addresses[0])
    before = int(server.stats()["cmd_get"])
    driver.worker.send(RunRequest(phase="measure", duration_ms=600_000))
    _until_it_plays(server, before)
    driver.worker.close_stdin()
    ended = exits(driver, 15)
    driver.replace()
    expect(ended, "it goes on")


def a_unix_socket(driver: WorkerDriver, wire: str, _server: RunningServer) -> None:
    """A client with the capability `unix` plays over a Unix socket; the others refuse it."""
    if not driver.can("unix"):
        answer = driver.ask(driver.request(wire, ["unix:/nowhere"], _GETS))
        expect(not isinstance(answer, Ready), "a Unix socket, which it does not claim")
        return
    with running(parse_spec("memcached:threads=1,memory=16,unix=yes")) as by_path:
        _prepared(driver, wire, by_path.addresses[0])
        done = driver.play(RunRequest(phase="measure", ops=100))
        expect_equal(_gets(done).hits, 100, "hits over a Unix socket")


CASES = (
    *each(
        a_wrong_byte_is_a_wrong_value,
        other_flags_are_a_wrong_value,
        a_lost_write_is_a_wrong_value,
        silence_is_a_timeout_and_no_miss,
    ),
    ConformanceCase(
        a_late_reply_answers_no_other_call, but(TEST_DOUBLE, "it gives up at the first failure")
    ),
    ConformanceCase(an_error_reply_is_an_error),
    ConformanceCase(an_error_reply_counts_as_its_kind, but(TEST_DOUBLE, "it knows no kinds")),
    *each(no_server_is_an_error, a_server_that_is_killed),
    ConformanceCase(a_stop_ends_a_run, but(TEST_DOUBLE, "it reads a stop once its run is over")),
    ConformanceCase(a_unix_socket),
    ConformanceCase(
        the_end_of_stdin_ends_the_process,
        but(TEST_DOUBLE, "it reads the end of stdin once its run is over"),
    ),
)


def _prepared(driver: WorkerDriver, wire: str, address: str, **fields: int) -> None:
    """Prepare and prefill; both must succeed."""
    stored = driver.begin(wire, [address], _GETS, **fields)
    expect_equal(stored.operations["set"].ok, _KEYS, "keys stored")


def _gets(done: Done) -> Operation:
    expect("get" in done.operations, f"no get among {sorted(done.operations)}")
    return done.operations["get"]


def _until_it_plays(server: RunningServer, before: int) -> None:
    """Wait until gets have reached the server. Raises CaseFailedError when none come."""
    until = time.monotonic() + ANSWER_S
    while int(server.stats()["cmd_get"]) <= before:
        if time.monotonic() > until:
            raise CaseFailedError(f"no get came within {ANSWER_S:g} s")
