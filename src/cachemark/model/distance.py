"""A distance to a server, and what the proxy accounts for that makes it."""

import msgspec


class HeldBytes(msgspec.Struct, frozen=True, kw_only=True):
    """Pieces of one direction, each held from its read to its write; `full`: reads put off."""

    pieces: int
    bytes: int
    full: int
    least_ns: int
    median_ns: int
    p99_ns: int


class Distance(msgspec.Struct, frozen=True, kw_only=True):
    """By itself the proxy takes `floor_ns`. `held`, on the way there and back, comes at the end.

    `refused`: connections of clients that it could not connect to the server.
    """

    round_trip_ns: int = 0
    floor_ns: int = 0
    connections: int = 0
    refused: int = 0
    held: list[HeldBytes] = []
