"""Checks of a worker's claims: it plays all that it claims, and refuses all else.

Each check asks for one capability. A worker that claims it must play the tape; one that does not
must answer `prepare` with `unsupported`, so that nothing else is played in its place.
"""

from typing import Any

from cachemark.checks.conformance.cases import ConformanceCase, claiming
from cachemark.checks.conformance.worker_driver import WorkerDriver, expect, expect_equal
from cachemark.endpoints.servers import RunningServer, parse_spec, running
from cachemark.model.protocol import Done, Ready, RunRequest, Unsupported

_KEYS = 200
_OPS = 400
_TAPE = ("--keys", str(_KEYS), "--size", "30", "--mix", "get=1", "--ops", str(_OPS))
_OPEN_TAPE = (*_TAPE[:6], "--schedule", "uniform", "--rate", "400", "--duration", "500ms")
_THINK_TAPE = (*_TAPE, "--think", "1us")


def several_callers_as_claimed(driver: WorkerDriver, wire: str, server: RunningServer) -> None:
    """`threads`: two callers at once."""
    _claimed(driver, wire, server.addresses, "threads", threads=2, connections=2)


def depth_as_claimed(driver: WorkerDriver, wire: str, server: RunningServer) -> None:
    """`pipeline`: more than one operation outstanding on a connection."""
    done = _claimed(driver, wire, server.addresses, "pipeline", depth=4)
    if done is not None:
        expect(1 <= done.max_in_flight <= 4, f"max_in_flight {done.max_in_flight} at depth 4")


def shared_connections_as_claimed(driver: WorkerDriver, wire: str, server: RunningServer) -> None:
    """`shared`: four callers on two connections."""
    _claimed(driver, wire, server.addresses, "shared", threads=4, connections=2)


def several_servers_as_claimed(driver: WorkerDriver, wire: str, server: RunningServer) -> None:
    """`cluster`: keys are spread over two servers, and both get some."""
    del server  # it may still count removed items
    with running(parse_spec("cluster:2:memcached:threads=1,memory=64")) as both:
        if _claimed(driver, wire, both.addresses, "cluster") is None:
            return
        held = [each.number("curr_items") or 0 for each in both.member_stats()]
    expect_equal(sum(held), _KEYS, "items on both servers")
    expect(min(held) > 0, f"items on each server: {held}")


def unix_sockets_as_claimed(driver: WorkerDriver, wire: str, server: RunningServer) -> None:
    """`unix`: a server on a Unix socket."""
    del server
    with running(parse_spec("memcached:threads=1,memory=64,unix=yes")) as local:
        _claimed(driver, wire, local.addresses, "unix")


def open_loops_as_claimed(driver: WorkerDriver, wire: str, server: RunningServer) -> None:
    """`open_loop`: a tape with intended starts."""
    _claimed(driver, wire, server.addresses, "open_loop", tape=_OPEN_TAPE)


def think_time_as_claimed(driver: WorkerDriver, wire: str, server: RunningServer) -> None:
    """`think`: a tape whose callers think between reply and send."""
    _claimed(driver, wire, server.addresses, "think", tape=_THINK_TAPE)


CASES = (
    ConformanceCase(shared_connections_as_claimed, claiming("threads"), all_wires=False),
    *(
        ConformanceCase(function, all_wires=False)
        for function in (
            several_callers_as_claimed,
            depth_as_claimed,
            several_servers_as_claimed,
            unix_sockets_as_claimed,
            open_loops_as_claimed,
            think_time_as_claimed,
        )
    ),
)


def _claimed(
    driver: WorkerDriver,
    wire: str,
    servers: list[str],
    capability: str,
    *,
    tape: tuple[str, ...] = _TAPE,
    **fields: Any,
) -> Done | None:
    """Play a tape that needs the capability; None if the worker neither claims nor plays it."""
    answer = driver.ask(driver.request(wire, servers, tape, **fields))
    if not driver.can(capability):
        expect(
            isinstance(answer, Unsupported),
            f"it does not claim `{capability}`, but answers `prepare` with {answer}",
        )
        return None
    expect(isinstance(answer, Ready), f"it claims `{capability}`, but answers {answer}")
    expect_equal(
        driver.play(RunRequest(phase="prefill")).operations["set"].ok, _KEYS, "keys stored"
    )
    done = driver.play(RunRequest(phase="measure", ops=_OPS, duration_ms=60_000))
    gets = done.operations["get"]
    expect_equal(
        (gets.ok, gets.hits), (gets.attempts, gets.attempts), "ok and hits of all attempts"
    )
    return done
