"""Cases for open loops: every operation that was due is sent, or counted as unsent."""

import threading

from cachemark.checks.conformance.cases import ConformanceCase, but, claiming, each, every
from cachemark.checks.conformance.proxy import proxied
from cachemark.checks.conformance.timelines import check_end_times, check_sums
from cachemark.checks.conformance.worker_driver import WorkerDriver, expect, expect_equal
from cachemark.endpoints.servers import RunningServer
from cachemark.model import histogram
from cachemark.model.histogram import Histogram
from cachemark.model.protocol import RunRequest, Stop

_KEYS = 20
_UNIFORM = ("--keys", str(_KEYS), "--size", "30", "--mix", "get=1", "--schedule", "uniform")
# The time for which the proxy holds a reply, and the length of a run that is stopped.
_STALL_S = 0.3


def every_due_operation_is_done(driver: WorkerDriver, wire: str, server: RunningServer) -> None:
    """The schedule repeats after its end; each operation has a send lag."""
    _prepared(driver, wire, server.addresses[0], "--rate", "200", "--duration", "500ms")
    before = int(server.stats()["cmd_get"])
    done = driver.play(RunRequest(phase="measure", duration_ms=750))
    result = done.operations["get"]
    # 100 in the first pass of half a second, 50 in the first half of the second.
    expect_equal((result.ok, result.hits, result.attempts), (150, 150, 150), "ok, hits, attempts")
    expect_equal(int(server.stats()["cmd_get"]) - before, 150, "the server's cmd_get")
    expect_equal(done.unsent, 0, "unsent")
    expect_equal(_decoded(done.send_lag, "send_lag").count, 150, "count of the send_lag histogram")
    expect(done.elapsed_ns >= 745e6, f"elapsed {done.elapsed_ns} ns")
    response, service = _decoded(result.response, "response"), _decoded(result.service, "service")
    expect_equal((response.count, service.count), (150, 150), "counts of the histograms")
    expect(response.mean() >= service.mean(), "response below service")
    if driver.can("timeline"):
        check_sums(done)
        check_end_times(done, 5_000_000)


def a_stall_is_in_the_response_time(driver: WorkerDriver, wire: str, server: RunningServer) -> None:
    """Operations that came due during a stall have a response time since their intended start."""
    with proxied(server.addresses[0]) as proxy:
        _prepared(driver, wire, proxy.address, "--rate", "100", "--duration", "500ms")
        proxy.fault = "hold"
        driver.worker.send(RunRequest(phase="measure", duration_ms=500))
        expect(proxy.held.wait(15), "no get came")
        threading.Timer(_STALL_S, proxy.release.set).start()
        done = driver.finish()
    result = done.operations["get"]
    expect_equal((result.ok, done.max_in_flight), (50, 1), "ok and max_in_flight")
    # About 30 came due while the only connection waited, and they waited 150 ms on average.
    expect(done.queued >= 25, f"queued {done.queued}")
    response, service = _decoded(result.response, "response"), _decoded(result.service, "service")
    waited = response.percentile(75) > 100e6
    expect(waited, "the stall is not in the response times of those that waited")
    expect(service.max() >= 290e6, "the stall is not in the service time")
    # One connection does one operation at a time, so only one of them waited for the reply.
    in_turn = service.count * service.mean() <= 1.01 * done.elapsed_ns
    expect(in_turn, "the service times of one connection are longer than the run")


def what_a_stop_cuts_off_is_unsent(driver: WorkerDriver, wire: str, server: RunningServer) -> None:
    """Operations that were due but never sent are counted, with the time that they waited."""
    with proxied(server.addresses[0]) as proxy:
        _prepared(driver, wire, proxy.address, "--rate", "1000", "--duration", "1s")
        # Twenty come due for each that is answered: whenever the stop is read, many are left.
        proxy.fault, proxy.late_s = "slow", 0.02
        driver.worker.send(RunRequest(phase="measure", duration_ms=60_000))
        expect(proxy.held.wait(15), "no get came")
        threading.Timer(_STALL_S, lambda: driver.worker.send(Stop())).start()
        done = driver.finish()
    expect(done.unsent >= 100, f"unsent {done.unsent}")
    result = done.operations["get"]
    count = _decoded(result.response, "response").count
    expect_equal(count, result.ok + done.unsent, "count of the response histogram")
    if driver.can("timeline"):
        check_sums(done)


_OPEN_LOOP = claiming("open_loop")
_ALL_IS_SENT = but("native", "it sends what is due, late or not, before it ends")
CASES = (
    *each(every_due_operation_is_done, a_stall_is_in_the_response_time, rule=_OPEN_LOOP),
    ConformanceCase(what_a_stop_cuts_off_is_unsent, every(_OPEN_LOOP, _ALL_IS_SENT)),
)


def _prepared(driver: WorkerDriver, wire: str, address: str, *schedule: str) -> None:
    """Prepare and prefill; both must succeed."""
    stored = driver.begin(wire, [address], (*_UNIFORM, *schedule))
    expect_equal(stored.operations["set"].ok, _KEYS, "keys stored")


def _decoded(blob: str | None, name: str) -> Histogram:
    expect(blob, f"no {name} histogram")
    return histogram.decode(blob or "")
