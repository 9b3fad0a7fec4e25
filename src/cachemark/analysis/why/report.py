"""The whole answer of `cachemark why`, as values. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cachemark.analysis.why.causes import Finding, findings
from cachemark.model.counts import CountedWork


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A client and the first one, in one kind of operation; `findings` are in the rules' order.

    `findings` has what the client does more, `findings_of_base` what the first one does more.
    """

    kind: str
    client: str
    base: str
    findings: list[Finding]
    findings_of_base: list[Finding]


class WhyReport(msgspec.Struct, frozen=True, kw_only=True):
    """The counts, and the differences that the rules find between clients.

    `missing` says what could not be counted here, and the remedy.
    """

    work: str
    server: str
    repeat: int
    counted: list[CountedWork]
    differences: list[Difference]
    missing: list[str] = []


def differences(counted: Sequence[CountedWork]) -> list[Difference]:
    """Every client against the first one, by kind; a kind that one of both lacks is left out."""
    bases: dict[str, CountedWork] = {}
    found: list[Difference] = []
    for each in counted:
        base = bases.setdefault(each.kind, each)
        if base is not each and not (each.failure or base.failure):
            found.append(
                Difference(
                    kind=each.kind,
                    client=each.client,
                    base=base.client,
                    findings=findings(each, base),
                    findings_of_base=findings(base, each),
                )
            )
    return found
