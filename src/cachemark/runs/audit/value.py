"""What was looked at before anything was timed, as a run keeps it."""

from __future__ import annotations

import msgspec

from cachemark.checks.probe.finding import Finding, excluded
from cachemark.model.factors import Answer


class Fitness(msgspec.Struct, frozen=True, kw_only=True):
    """A server: how many things were looked at, and those that are not as with memcached.

    `unseen` is why it could not be looked at.
    """

    server: str
    checks: int = 0
    findings: list[Finding] = []
    unseen: str = ""


class Level(msgspec.Struct, frozen=True, kw_only=True):
    """A factor's level of a client or server, and whether it is what it says."""

    factor: str
    level: str
    subject: str
    answer: Answer
    evidence: str


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """All of it."""

    servers: list[Fitness] = []
    levels: list[Level] = []


class Caution(msgspec.Struct, frozen=True, kw_only=True):
    """What an audit means for one trial.

    `void`: why its level is not what it says, and so is not timed; `excluded`: what cannot be timed
    on the server, each with the reason; `quirks`: deviations found that clients must know.
    """

    void: str = ""
    excluded: dict[str, str] = {}
    quirks: list[str] = []


def of_server(fitness: Fitness, void: str) -> Caution:
    """The caution with which a server is timed. Pure."""
    quirks = [finding.quirk for finding in fitness.findings if finding.quirk]
    reasons = {
        what: f"{fitness.server} is unfit for {what}: {why}"
        for what, why in excluded(fitness.findings).items()
    }
    return Caution(void=void, excluded=reasons, quirks=quirks)
