"""Results of probes and of the other checks before the first trial, as a run stores them."""

import msgspec

from cachemark.model.factors import ProofAnswer
from cachemark.model.plan import Skipped


class Fitness(msgspec.Struct, frozen=True, kw_only=True):
    """A server: the number of checks, and the checks in which it is unlike memcached.

    `unseen` says why cachemark could not check the server.
    """

    server: str
    checks: int = 0
    findings: "list[ProbeResult]" = []
    unseen: str = ""


class Level(msgspec.Struct, frozen=True, kw_only=True):
    """A level that a client or server claims, whether it proved true, and the evidence."""

    factor: str
    level: str
    subject: str
    answer: ProofAnswer
    evidence: str


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """Every check before the first trial. `skipped`: cells that this machine cannot play."""

    skipped: list[Skipped] = []
    servers: list[Fitness] = []
    levels: list[Level] = []


class Restrictions(msgspec.Struct, frozen=True, kw_only=True):
    """An audit's reasons against one trial.

    `void`: why its level did not take effect, so that the trial is skipped; `excluded`: kinds,
    wires and ways of use that cannot be timed on the server, each with the reason; `quirks`:
    deviations from memcached that clients must know; `true_counters`: if the comparison of counts
    is excluded, the counters that may still be compared.
    """

    void: str = ""
    excluded: dict[str, str] = {}
    quirks: list[str] = []
    true_counters: list[str] = []


def of_server(fitness: Fitness, void: str) -> Restrictions:
    """The restrictions that follow from a server's probe. Pure."""
    quirks = [finding.quirk for finding in fitness.findings if finding.quirk]
    reasons = {
        what: f"{fitness.server} {_unfit_for(what)}: {why}"
        for what, why in excluded(fitness.findings).items()
    }
    true = [name for finding in fitness.findings for name in finding.true_counters]
    return Restrictions(void=void, excluded=reasons, quirks=quirks, true_counters=true)


def _unfit_for(what: str) -> str:
    return "cannot be measured" if what == EVERYTHING else f"is unfit for {what}"


class ProbeResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check.

    `fit`: the server behaves like memcached; None if it could not be checked. `seen` is what was
    observed, `means` the consequence in a sentence. `excludes` are operation kinds, wires and ways
    of use that cannot be timed; `quirk` is a deviation that clients must know (servers/quirks.py).
    `true_counters`: if some counters of `stats` are wrong, the counters that are right.
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
# Excludes the comparison of the server's counts with the client's, except for its true counters.
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
