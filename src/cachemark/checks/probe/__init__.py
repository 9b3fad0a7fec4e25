"""Is a server fit to be timed? Raw bytes, before anything is measured."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from cachemark.checks.probe.checks import SERVER_CHECKS, check_storing, counters
from cachemark.checks.probe.dialogue import dialogues
from cachemark.checks.probe.eviction import eviction, eviction_unknown
from cachemark.checks.probe.result import EVERYTHING, EVICTIONS, ProbeResult, excluded
from cachemark.endpoints.servers import RunningServer, ServerSpec, running, with_small_memory
from cachemark.model.errors import TrialError

__all__ = ["EVERYTHING", "EVICTIONS", "ProbeResult", "excluded", "probe", "probe_new_server"]

_MAX_FILL = 0.5


def probe(server: RunningServer, without: Collection[str] = ()) -> list[ProbeResult]:
    """Look at a server that runs; it holds nothing of the probe's afterwards.

    `without`: wires and ways of use that nobody is going to time, so that they need no look. Never
    raises for what the server does; of several servers each is looked at where they run already,
    else the first stands for all.
    """
    addresses = server.addresses if server.facts.kind == "remote" else server.addresses[:1]
    if len(addresses) == 1:
        return _one(server, addresses[0], without)
    return [
        msgspec.structs.replace(finding, name=f"{finding.name} at {address}")
        for address in addresses
        for finding in _one(server, address, without)
    ]


def _one(server: RunningServer, address: str, without: Collection[str]) -> list[ProbeResult]:
    stored, probed = check_storing(address)
    if EVERYTHING in stored.excludes:
        return [stored]
    findings = [stored, *(dialogue.run(probed) for dialogue in dialogues())]
    findings += [check(probed) for what, check in SERVER_CHECKS if what not in without]
    return [*findings, counters(probed, server)]


def probe_new_server(
    spec: ServerSpec,
    *,
    cpus: str = "",
    without: Collection[str] = (),
    held_bytes: int | None = None,
) -> list[ProbeResult]:
    """Start a server of its own and look at it, then at a small one for what it evicts.

    What it evicts does not matter where `held_bytes`, the most that will be stored, leave it half
    empty. Raises TrialError, UnsupportedError when it cannot be started.
    """
    with running(spec, cpus=cpus) as server:
        if not server.addresses:
            return []
        roomy = held_bytes is not None and held_bytes < _MAX_FILL * _limit_bytes(server)
        findings = probe(server, without)
    if roomy or any(EVERYTHING in finding.excludes for finding in findings):
        return findings
    spaced = any(finding.quirk == "trailing_space" for finding in findings)
    return [*findings, _eviction(spec, cpus, b" " if spaced else b"")]


def _limit_bytes(server: RunningServer) -> int:
    """What the server may hold; 0 where it does not tell."""
    return server.stats().number("limit_maxbytes") or 0


def _eviction(spec: ServerSpec, cpus: str, space: bytes) -> ProbeResult:
    little = with_small_memory(spec)
    if little is None:
        return eviction_unknown("a small server of this kind cannot be had")
    try:
        with running(little, cpus=cpus) as server:
            return eviction(server, space)
    except TrialError as error:
        return eviction_unknown(error.text)
