"""Addresses HOST:PORT, in every place where a user types one."""

import socket

import pytest

from cachemark.checks.doctor.network import round_trip_checks
from cachemark.endpoints.servers import parse_spec
from cachemark.endpoints.servers.control_connection import connect
from cachemark.model.address import HostPort, parse_host_port
from cachemark.model.errors import UsageError

READ = [
    ("localhost:11211", "localhost", 11211),
    ("10.0.0.7:1", "10.0.0.7", 1),
    ("cache-1.example.org:65535", "cache-1.example.org", 65535),
    ("[::1]:11211", "::1", 11211),
    ("[fe80::1%eth0]:11211", "fe80::1%eth0", 11211),
]
REFUSED = [
    ("", "not an address"),
    ("localhost", "not an address"),
    (":11211", "not an address"),
    ("localhost:", "not a port"),
    ("localhost:0", "not a port"),
    ("localhost:65536", "not a port"),
    ("localhost:-1", "not a port"),
    ("localhost:1e3", "not a port"),
    ("localhost:١٢", "not a port"),
    ("::1:11211", "in brackets"),
    ("[::1]", "not a port"),
    ("[]:11211", "not a host"),
    ("[::1:11211", "not a host"),
    ("a b:11211", "not a host"),
    ("http://localhost:11211", "not a host"),
]


@pytest.mark.parametrize(("text", "host", "port"), READ)
def test_an_address_is_parsed_and_printed(text: str, host: str, port: int) -> None:
    address = parse_host_port(text)
    assert address == HostPort(host, port)
    assert str(address) == text


@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_a_malformed_address_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_host_port(text)


@pytest.mark.parametrize("text", [text for text, _ in REFUSED if text])
def test_server_specs_and_the_doctor_refuse_malformed_addresses(text: str) -> None:
    with pytest.raises(UsageError):
        parse_spec(f"remote:{text}")
    with pytest.raises(UsageError):
        round_trip_checks([text])


def _listening_on_ipv6() -> socket.socket:
    try:
        return socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("no IPv6 here")


def test_an_ipv6_address_can_be_connected_to() -> None:
    with _listening_on_ipv6() as listener:
        port = listener.getsockname()[1]
        with connect(f"[::1]:{port}", 10):
            listener.accept()[0].close()
