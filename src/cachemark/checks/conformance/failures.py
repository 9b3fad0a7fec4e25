"""Checks of a worker in trouble: what goes wrong is counted as what it is, and nothing hangs."""

from __future__ import annotations

import os
import signal
import socket
import time

from cachemark.checks.conformance.proxy import BAD_REQUEST, OUT_OF_MEMORY, proxied
from cachemark.checks.conformance.tape_values import tape_values
from cachemark.checks.conformance.worker_driver import (
    ANSWER_S,
    Bench,
    CheckError,
    NotApplicableError,
    expect,
    gone,
    same,
)
from cachemark.endpoints.servers import RunningServer, parse_spec, running
from cachemark.model import histogram
from cachemark.model.protocol import Done, Failure, Operation, Prepare, Ready, Run, Stop

TIMEOUT_MS = 1000
_KEYS = 20
_GETS = ("--keys", str(_KEYS), "--size", "30", "--mix", "get=1", "--ops", "100")
_DOUBLE = "reference"


def a_wrong_byte_is_a_wrong_value(bench: Bench, wire: str, server: RunningServer) -> None:
    """A reply that differs from what was stored is neither a hit nor a miss."""
    with proxied(server.addresses[0]) as proxy:
        _prepared(bench, wire, proxy.address)
        proxy.values = tape_values(bench.folder / "tape")
        proxy.fault = "corrupt"
        told = _gets(bench.play(Run(phase="measure", ops=50)))
    same((told.attempts, told.wrong_values), (50, 50), "attempts and wrong values")
    same((told.ok, told.hits, told.misses, told.value_bytes), (0, 0, 0, 0), "ok, hits, misses")
    same(told.errors, {}, "errors")


def silence_is_a_timeout_and_no_miss(bench: Bench, wire: str, server: RunningServer) -> None:
    """A server that does not answer is waited for as long as was asked, and counted as that."""
    with proxied(server.addresses[0]) as proxy:
        _prepared(bench, wire, proxy.address)
        proxy.fault = "silence"
        done = bench.play(Run(phase="measure", duration_ms=TIMEOUT_MS), 30)
    told = _gets(done)
    same((told.ok, told.hits, told.misses), (0, 0, 0), "ok, hits, misses")
    expect(told.errors.get("timeout", 0) >= 1, f"errors {told.errors}")
    same(told.attempts, sum(told.errors.values()), "attempts")
    if bench.ready.client != _DOUBLE:
        expect(told.response, "no response histogram, though a timeout counts as it lasted")
        longest = histogram.decode(told.response or "").max()
        expect(longest >= TIMEOUT_MS * 1e6 * 0.99, f"the timeout lasted {longest / 1e6:.0f} ms")


def an_error_reply_is_an_error(bench: Bench, wire: str, server: RunningServer) -> None:
    """A server that refuses a read has not answered it."""
    with proxied(server.addresses[0]) as proxy:
        _prepared(bench, wire, proxy.address)
        proxy.fault = "error"
        told = _gets(bench.play(Run(phase="measure", ops=3), 30))
    same((told.ok, told.misses, told.hits, told.wrong_values), (0, 0, 0, 0), "ok, misses, hits")
    same((told.attempts, sum(told.errors.values())), (3, 3), "attempts and errors")


def an_error_reply_counts_as_its_kind(bench: Bench, wire: str, server: RunningServer) -> None:
    """Whose fault an error is: docs/fault-kinds.md lists the server's words and statuses."""
    _not_the_double(bench, "it knows no kinds")
    for kind, error in (("server", OUT_OF_MEMORY), ("client", BAD_REQUEST)):
        with proxied(server.addresses[0]) as proxy:
            _prepared(bench, wire, proxy.address)
            proxy.fault, proxy.error = "error", error
            told = _gets(bench.play(Run(phase="measure", ops=1), 30))
        same(told.errors, {kind: 1}, f"the errors of {error.line.decode()!r}")


def no_server_is_an_error(bench: Bench, wire: str, _server: RunningServer) -> None:
    """A server that is not there is known at prepare, by its address."""
    with socket.socket() as taken:  # a port that nobody listens on
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        answer = bench.ask(_request(bench, wire, address))
    expect(isinstance(answer, Failure), f"prepare was answered by {answer}")
    if isinstance(answer, Failure):
        same(answer.kind, "connect", "the kind of error")
        told = address in answer.text or bench.ready.client == _DOUBLE
        expect(told, f"no address in {answer.text!r}")


def a_server_that_is_killed(bench: Bench, wire: str, server: RunningServer) -> None:
    """What was done before counts, what failed afterwards is an error, no miss."""
    _prepared(bench, wire, server.addresses[0])
    before = int(server.stats()["cmd_get"])  # some libraries try a get when they connect
    # Long enough that the kill comes before its end on a busy machine too.
    bench.worker.send(Run(phase="measure", duration_ms=2000))
    _until_it_plays(server, before)
    expect(server.pid is not None, "the server is not ours")
    os.kill(server.pid or 0, signal.SIGKILL)
    done = bench.finish(30)
    if not isinstance(done, Done):
        expect(False, f"the run was answered by {done}")
        return
    told = _gets(done)
    expect(told.ok > 0, "nothing was done before")
    same((told.hits, told.misses, told.wrong_values), (told.ok, 0, 0), "hits, misses, wrong values")
    failed = sum(told.errors.values())
    same(failed, told.attempts - told.ok, "errors")
    expect(failed > 0, "no operation failed")


def a_stop_ends_a_run(bench: Bench, wire: str, server: RunningServer) -> None:
    """A run ends when it is told to, with all that was done, and another one may follow."""
    _not_the_double(bench, "it reads a stop once its run is over")
    _prepared(bench, wire, server.addresses[0])
    before = int(server.stats()["cmd_get"])
    bench.worker.send(Run(phase="measure", duration_ms=600_000))
    _until_it_plays(server, before)
    bench.worker.send(Stop())
    done = bench.finish(30)
    expect(isinstance(done, Done), f"the run was answered by {done}")
    if isinstance(done, Done):
        same(_gets(done).ok, int(server.stats()["cmd_get"]) - before, "ok, against the server's")
    again = bench.play(Run(phase="measure", ops=10))
    same(_gets(again).ok, 10, "ok of the run after it")


def the_end_of_stdin_ends_the_process(bench: Bench, wire: str, server: RunningServer) -> None:
    """A worker whose caller has exited does not go on."""
    _not_the_double(bench, "it reads the end of stdin once its run is over")
    _prepared(bench, wire, server.addresses[0])
    bench.worker.send(Run(phase="measure", duration_ms=600_000))
    _until_it_plays(server)
    bench.worker.close_stdin()
    ended = gone(bench, 15)
    bench.replace()
    expect(ended, "it goes on")


def a_unix_socket(bench: Bench, wire: str, _server: RunningServer) -> None:
    """A path is as good as a port, for those that say so; the others refuse it."""
    if not bench.can("unix"):
        answer = bench.ask(_request(bench, wire, "unix:/nowhere"))
        expect(not isinstance(answer, Ready), "a Unix socket that it does not say that it can")
        return
    with running(parse_spec("memcached:threads=1,memory=16,unix=yes")) as by_path:
        _prepared(bench, wire, by_path.addresses[0])
        done = bench.play(Run(phase="measure", ops=100))
        same(_gets(done).hits, 100, "hits over a Unix socket")


CHECKS = (
    a_wrong_byte_is_a_wrong_value,
    silence_is_a_timeout_and_no_miss,
    an_error_reply_is_an_error,
    an_error_reply_counts_as_its_kind,
    no_server_is_an_error,
    a_server_that_is_killed,
    a_stop_ends_a_run,
    a_unix_socket,
    the_end_of_stdin_ends_the_process,
)


def _request(bench: Bench, wire: str, address: str) -> Prepare:
    return Prepare(
        servers=[address],
        wire=wire,
        tape=str(bench.tape(*_GETS)),
        timeout_ms=TIMEOUT_MS,
        options=bench.spec.options,
    )


def _prepared(bench: Bench, wire: str, address: str) -> None:
    """Prepare and prefill, both without fail."""
    bench.prepare(_request(bench, wire, address))
    stored = bench.play(Run(phase="prefill")).operations["set"].ok
    same(stored, _KEYS, "keys stored")


def _gets(done: Done) -> Operation:
    expect("get" in done.operations, f"no get among {sorted(done.operations)}")
    return done.operations["get"]


def _not_the_double(bench: Bench, why: str) -> None:
    if bench.ready.client == _DOUBLE:
        raise NotApplicableError(why)


def _until_it_plays(server: RunningServer, before: int = 0) -> None:
    """Wait until gets have reached the server. Raises CheckError when none come."""
    until = time.monotonic() + ANSWER_S
    while int(server.stats()["cmd_get"]) <= before:
        if time.monotonic() > until:
            raise CheckError(f"no get came within {ANSWER_S:g} s")
