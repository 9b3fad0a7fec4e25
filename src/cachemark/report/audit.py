"""What was looked at before anything was timed: the servers, and the factors' levels."""

from __future__ import annotations

from cachemark.report.value import Section
from cachemark.runs.audit.value import Audit


def sections(audit: Audit | None) -> list[Section]:
    """Servers with a deviation, and every level; none where there is nothing to tell."""
    return [*_servers(audit), *_levels(audit)] if audit else []


def _servers(audit: Audit) -> list[Section]:
    rows = [
        [fitness.server, finding.name, finding.seen, finding.means]
        for fitness in audit.servers
        for finding in fitness.findings
    ]
    if not rows:
        return []
    good = [
        f"{fitness.server}: {fitness.checks - len(fitness.findings)} of {fitness.checks} checks "
        "are as with memcached"
        for fitness in audit.servers
        if fitness.checks
    ]
    return [
        Section(
            title="Are the servers fit to be timed?",
            columns=["server", "check", "seen", "so"],
            rows=rows,
            notes=["what a server is unfit for is not timed on it", *good],
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
            title="Are the factors' levels real?",
            columns=["level", "of", "answer", "seen"],
            rows=rows,
            notes=[
                "each was played once before the trials and watched at the server's side; a level "
                "that is void is not what it says, and its cells are not timed",
            ],
            topic="audit",
            prose=True,
        )
    ]
