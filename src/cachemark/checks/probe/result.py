"""What a probe finds."""

from __future__ import annotations

import msgspec


class ProbeResult(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at.

    `fit`: the server does it as memcached does; None where it could not be looked at. `excludes`
    are operation kinds, wires and ways of use that cannot be timed if it is not; `quirk` is what
    clients must know (servers/quirks.py); `means` is both in a sentence.
    """

    name: str
    fit: bool | None
    seen: str
    means: str = ""
    excludes: list[str] = []
    quirk: str = ""


# Without this a server cannot be timed at all.
EVERYTHING = "everything"
# What nothing can be measured across on a server that throws away the wrong items.
EVICTIONS = "evictions"
# The server's counts cannot be held against a client's.
CONSERVATION = "conservation"
# Several operations under way on one connection.
PIPELINE = "pipeline"


def excluded(findings: list[ProbeResult]) -> dict[str, str]:
    """What cannot be timed on the server, each with the reason. Pure."""
    return {
        what: f"{finding.name}: {finding.seen}"
        for finding in reversed(findings)
        if finding.fit is False
        for what in finding.excludes
    }
