"""Does a server behave like memcached? Checks with raw requests, before anything is measured."""

from collections.abc import Collection

import msgspec

from cachemark.endpoints.probe.checks import SERVER_CHECKS, check_storing, counters
from cachemark.endpoints.probe.dialogue import dialogues
from cachemark.endpoints.probe.eviction import eviction, eviction_unknown
from cachemark.endpoints.servers import (
    RunningServer,
    ServerSpec,
    running_unencrypted,
    with_small_memory,
)
from cachemark.model.audit import EVERYTHING, ProbeResult, excluded
from cachemark.model.errors import TrialError

_MAX_FILL = 0.5


def probe(server: RunningServer, skip: Collection[str] = ()) -> list[ProbeResult]:
    """Check a running server. Afterwards it holds no keys of the probe.

    `skip`: wires and ways of use that will not be timed, so the probe skips them. It checks each of
    several remote servers, but only the first of several that cachemark started. A failure of the
    server is not raised, but becomes a result.
    """
    addresses = server.addresses if server.facts.kind == "remote" else server.addresses[:1]
    if len(addresses) == 1:
        return _one(server, addresses[0], skip)
    return [
        msgspec.structs.replace(finding, name=f"{finding.name} at {address}")
        for address in addresses
        for finding in _one(server, address, skip)
    ]


def _one(server: RunningServer, address: str, skip: Collection[str]) -> list[ProbeResult]:
    stored, probed = check_storing(address)
    if EVERYTHING in stored.excludes:
        return [stored]
    findings = [stored, *(dialogue.run(probed) for dialogue in dialogues())]
    findings += [check(probed) for what, check in SERVER_CHECKS if what not in skip]
    return [*findings, counters(probed, server)]


def probe_new_server(
    spec: ServerSpec, *, cpus: str = "", skip: Collection[str] = (), held_bytes: int | None = None
) -> list[ProbeResult]:
    """Start a server and check it, then start a small one and check what it evicts.

    Eviction is not checked if `held_bytes`, the most that will be stored, fills less than half of
    the server. Raises TrialError, UnsupportedError if the server cannot be started.
    """
    with running_unencrypted(spec, cpus=cpus) as server:
        if not server.addresses:
            return []
        never_full = held_bytes is not None and held_bytes < _MAX_FILL * _limit_bytes(server)
        findings = probe(server, skip)
    if never_full or any(EVERYTHING in finding.excludes for finding in findings):
        return findings
    spaced = any(finding.quirk == "trailing_space" for finding in findings)
    return [*findings, _eviction(spec, cpus, b" " if spaced else b"")]


def _limit_bytes(server: RunningServer) -> int:
    """The server's memory limit; 0 if it reports none. If `stats` fails, another check says so."""
    try:
        return server.stats().number("limit_maxbytes") or 0
    except TrialError:
        return 0


def _eviction(spec: ServerSpec, cpus: str, space: bytes) -> ProbeResult:
    little = with_small_memory(spec)
    if little is None:
        return eviction_unknown("cachemark cannot start a small server of this kind")
    try:
        with running_unencrypted(little, cpus=cpus) as server:
            return eviction(server, space)
    except TrialError as error:
        return eviction_unknown(error.text)
