"""The audit before the first trial: probes of the servers, and checks of the factors' levels."""

from cachemark.model.audit import CONSERVATION, Audit, excluded
from cachemark.report.model import Section


def sections(audit: Audit | None) -> list[Section]:
    """One section for servers that deviate from memcached, and one for the levels."""
    return [*_servers(audit), *_levels(audit)] if audit else []


def unverified_lines(audit: Audit | None) -> list[str]:
    """A line for each server whose counters could not all be compared with the clients' counts."""
    reasons = {
        fitness.server: excluded(fitness.findings).get(CONSERVATION, "")
        for fitness in (audit.servers if audit else [])
    }
    return [
        f"Not verified: {server} did not confirm all counts of the clients: {why}. "
        "The bytes of every reply were checked."
        for server, why in reasons.items()
        if why
    ]


def _servers(audit: Audit) -> list[Section]:
    rows = [
        [fitness.server, finding.name, finding.seen, finding.means]
        for fitness in audit.servers
        for finding in fitness.findings
    ]
    if not rows:
        return []
    good = [
        f"{fitness.server}: {fitness.checks - len(fitness.findings)} of {fitness.checks} "
        "checks give the same result as memcached"
        for fitness in audit.servers
        if fitness.checks
    ]
    return [
        Section(
            title="Do the servers behave like memcached?",
            columns=["server", "check", "seen", "consequence"],
            rows=rows,
            notes=["work that a server does not do correctly is not measured on it", *good],
            topic="audit",
            prose=True,
        )
    ]


def _levels(audit: Audit) -> list[Section]:
    if not audit.levels:
        return []
    alike: dict[tuple[str, str, str], list[str]] = {}
    for one in audit.levels:
        level = f"{one.factor}: {one.level}"
        alike.setdefault((level, one.answer, one.evidence), []).append(one.subject)
    rows = [
        [level, ", ".join(subjects), answer, evidence]
        for (level, answer, evidence), subjects in alike.items()
    ]
    return [
        Section(
            title="Do the factors' levels take effect?",
            columns=["level", "of", "answer", "seen"],
            rows=rows,
            notes=[
                "before the trials, each level was played once and observed from the server's "
                "side; a void level has no effect, and its cells are not measured"
            ],
            topic="audit",
            prose=True,
        )
    ]
