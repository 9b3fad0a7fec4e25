"""Cases for callers that give up calls, as far as a worker's callers can."""

from __future__ import annotations

from cachemark.checks.conformance.proxy import Proxy, proxied
from cachemark.checks.conformance.worker_driver import (
    NotApplicableError,
    WorkerDriver,
    expect,
    expect_equal,
)
from cachemark.endpoints.servers import RunningServer
from cachemark.model.protocol import Prepare, Run
from cachemark.model.protocol_run import GiveUp, Way

_TAPE = (
    "--keys", "10", "--size", "20", "--mix", "get=1", "--schedule", "uniform", "--rate", "1000",
    "--duration", "100ms",
)  # fmt: skip
# For a library that lets nothing else run while it waits, the call ends by this.
_TIMEOUT_MS = 2000
_OPS = 3


def a_call_that_is_given_up_is_a_timeout(
    driver: WorkerDriver, wire: str, server: RunningServer
) -> None:
    """The task or thread of a read without a reply is ended: the read is a time-out."""
    way = _way_of(driver, ("cancel", "kill"))
    with proxied(server.addresses[0]) as proxy:
        _prepare(driver, wire, proxy)
        proxy.fault = "hold"
        done = driver.play(Run(phase="measure", ops=1, gives_up=_give_up(way, after_ms=50)))
    expect_equal(done.operations["get"].errors, {"timeout": 1}, "errors of a read that is given up")


def a_forked_child_reads_too(driver: WorkerDriver, wire: str, server: RunningServer) -> None:
    """Before each read a child makes the same one."""
    way = _way_of(driver, ("fork",))
    with proxied(server.addresses[0]) as proxy:
        _prepare(driver, wire, proxy)
        before = _reads(proxy)
        done = driver.play(Run(phase="measure", ops=_OPS, gives_up=_give_up(way, after_ms=300)))
        read = _reads(proxy) - before
    expect_equal(done.operations["get"].attempts, _OPS, "reads of the callers")
    # A child that gets no CPU until it is killed reads nothing.
    expect(_OPS < read <= 2 * _OPS, f"{read} reads, of callers and children")


CASES = (a_call_that_is_given_up_is_a_timeout, a_forked_child_reads_too)


def _way_of(driver: WorkerDriver, ways: tuple[Way, ...]) -> Way:
    for way in ways:
        if driver.can("open_loop") and driver.can(way):
            return way
    raise NotApplicableError("its callers cannot give up a call like this")


def _prepare(driver: WorkerDriver, wire: str, proxy: Proxy) -> None:
    driver.prepare(
        Prepare(
            servers=[proxy.address],
            wire=wire,
            tape=str(driver.tape(*_TAPE)),
            timeout_ms=_TIMEOUT_MS,
            options=driver.spec.options,
        )
    )
    driver.play(Run(phase="prefill"))


def _give_up(way: Way, after_ms: int) -> GiveUp:
    return GiveUp(way=way, every=1, after_ms=after_ms, begin_ms=0, end_ms=60_000)


def _reads(proxy: Proxy) -> int:
    return sum(command.verb == "get" for command in proxy.commands)
