"""How far servers are: a listener of our own, a free port, and what is no address."""

import socket

import pytest

from cachemark.checks.doctor import network
from cachemark.host import round_trip
from cachemark.host.round_trip import RoundTrips
from cachemark.model.errors import UsageError


def test_a_round_trip_is_of_the_kernel_alone() -> None:
    """No program accepts, and yet it is answered; what is measured is in order."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        found = round_trip.measure_round_trips(*server.getsockname())
    assert 0 < found.min_ns <= found.median_ns <= found.max_ns


@pytest.mark.parametrize(("median_us", "status"), [(150, "ok"), (1100, "warn")])
def test_it_is_judged_by_its_median(
    monkeypatch: pytest.MonkeyPatch, median_us: int, status: str
) -> None:
    found = RoundTrips(min_ns=90_000, median_ns=median_us * 1000, max_ns=9_000_000)
    monkeypatch.setattr(network, "measure_loopback", lambda: found)
    monkeypatch.setattr(network, "measure_round_trips", lambda _host, _port: found)
    here, there = network.round_trip_checks(["cache.example:11211"])
    assert there.name == "round trip to cache.example:11211"
    assert there.value == f"{median_us} µs, 90 to 9000"
    assert (here.status, there.status) == (status, status)
    assert bool(there.remedy) == (status != "ok")


def test_a_server_that_is_not_there_fails() -> None:
    with socket.socket() as bound:  # bound and not listening: no other process gets the port
        bound.bind(("127.0.0.1", 0))
        (_, there) = network.round_trip_checks([f"127.0.0.1:{bound.getsockname()[1]}"])
    assert there.status == "fail"
    assert "not reached" in there.value
    assert there.remedy


@pytest.mark.parametrize("text", ["cache", "cache:", ":11211", "cache:0", "cache:70000"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"--target .*\n.*HOST:PORT"):
        network.round_trip_checks([text])
