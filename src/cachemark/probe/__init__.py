"""Is a server fit to be timed? Raw bytes, before anything is measured."""

from __future__ import annotations

import msgspec

from cachemark.errors import TrialError
from cachemark.probe.checks import SUBJECT_CHECKS, counters, storing
from cachemark.probe.dialogue import dialogues
from cachemark.probe.eviction import eviction, unknown
from cachemark.probe.finding import EVERYTHING, Finding, excluded
from cachemark.servers import RunningServer, ServerSpec, running, small

__all__ = ["EVERYTHING", "Finding", "examine", "excluded", "probe"]


def probe(server: RunningServer) -> list[Finding]:
    """Look at a server that runs; it holds nothing of the probe's afterwards.

    Never raises for what the server does; of several servers each is looked at where they run
    already, else the first stands for all.
    """
    addresses = server.addresses if server.facts.kind == "remote" else server.addresses[:1]
    if len(addresses) == 1:
        return _one(server, addresses[0])
    return [
        msgspec.structs.replace(finding, name=f"{finding.name} at {address}")
        for address in addresses
        for finding in _one(server, address)
    ]


def _one(server: RunningServer, address: str) -> list[Finding]:
    stored, subject = storing(address)
    if EVERYTHING in stored.excludes:
        return [stored]
    findings = [stored, *(dialogue.run(subject) for dialogue in dialogues())]
    findings += [check(subject) for check in SUBJECT_CHECKS]
    return [*findings, counters(subject, server)]


def examine(spec: ServerSpec, *, cpus: str = "") -> list[Finding]:
    """Start a server of its own and look at it, then at a small one for what it evicts.

    Raises TrialError, UnsupportedError when it cannot be started.
    """
    with running(spec, cpus=cpus) as server:
        if not server.addresses:
            return []
        findings = probe(server)
    if any(EVERYTHING in finding.excludes for finding in findings):
        return findings
    spaced = any(finding.quirk == "trailing_space" for finding in findings)
    return [*findings, _eviction(spec, cpus, b" " if spaced else b"")]


def _eviction(spec: ServerSpec, cpus: str, space: bytes) -> Finding:
    little = small(spec)
    if little is None:
        return unknown("a small server of this kind cannot be had")
    try:
        with running(little, cpus=cpus) as server:
            return eviction(server, space)
    except TrialError as error:
        return unknown(error.text)
