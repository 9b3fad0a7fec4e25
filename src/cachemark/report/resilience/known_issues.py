"""The public reports of known_issues.toml that a client can have in its installed version."""

import re
from pathlib import Path

import msgspec

from cachemark.model.shipped_rows import shipped_rows
from cachemark.model.units import version_numbers


class KnownIssue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One report; the fields are explained in known_issues.toml."""

    clients: list[str]
    url: str
    what: str
    faults: list[str]
    fixed_in: str = ""

    @property
    def label(self) -> str:
        """How it is called in its repository, such as `#166`."""
        return f"#{self.url.rpartition('/')[2]}"


def all_issues() -> tuple[KnownIssue, ...]:
    """Every report, in the order of the file."""
    return shipped_rows(Path(__file__).with_name("known_issues.toml"), "issue", KnownIssue)


def issues_of(client: str, library_version: str) -> list[KnownIssue]:
    """The reports about a client, as it is typed, that its version does not fix.

    A version without a number can have all of them.
    """
    version = version_numbers(library_version)
    name = re.split(r"[?@]", client, maxsplit=1)[0]
    return [
        issue
        for issue in all_issues()
        if name in issue.clients
        and not (issue.fixed_in and version >= version_numbers(issue.fixed_in))
    ]
