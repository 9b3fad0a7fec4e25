"""The results of probes."""

from __future__ import annotations

import msgspec


class ProbeResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check.

    `fit`: the server behaves like memcached; None if it could not be checked. `seen` is what was
    observed, `means` the consequence in a sentence. `excludes` are operation kinds, wires and ways
    of use that cannot be timed; `quirk` is a deviation that clients must know (servers/quirks.py).
    `true_counters`: counters of `stats` that rise as memcached's do, where others do not.
    """

    name: str
    fit: bool | None
    seen: str
    means: str = ""
    excludes: list[str] = []
    quirk: str = ""
    true_counters: list[str] = []


# Excludes the server completely.
EVERYTHING = "everything"
# Excludes workloads that fill the server: it evicts the wrong items.
EVICTIONS = "evictions"
# Excludes the comparison of the server's counts with the client's, but for its true counters.
CONSERVATION = "conservation"
# Excludes several outstanding operations on one connection.
PIPELINE = "pipeline"


def excluded(findings: list[ProbeResult]) -> dict[str, str]:
    """The kinds that cannot be timed on the server, each with the reason. Pure."""
    return {
        what: f"{finding.name}: {finding.seen}"
        for finding in reversed(findings)
        if finding.fit is False
        for what in finding.excludes
    }
