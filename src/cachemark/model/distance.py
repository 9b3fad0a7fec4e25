"""A distance to a server, and the account of the proxy that makes it."""

import msgspec


class HeldBytes(msgspec.Struct, frozen=True, kw_only=True):
    """The pieces of one direction, held from read to write; `full`: reads put off, buffer full."""

    pieces: int
    bytes: int
    full: int
    least_ns: int
    median_ns: int
    p99_ns: int


class Distance(msgspec.Struct, frozen=True, kw_only=True):
    """A round trip takes the proxy itself `floor_ns`. `held`, there and back, is set at the end.

    `refused`: clients' connections for which it got no connection to the server.
    """

    round_trip_ns: int = 0
    floor_ns: int = 0
    connections: int = 0
    refused: int = 0
    held: list[HeldBytes] = []
