"""Errors that a user can mend: one sentence with the place, one with the remedy."""

from __future__ import annotations

import msgspec

# What reading JSON or TOML that somebody else wrote raises. Text that is no UTF-8, numbers of
# thousands of digits and brackets nested without end are Python's own errors, not the libraries'.
UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)


class UsageError(Exception):
    """Bad input. The CLI prints it as one message and exits with status 2.

    `text` names the place and what is wrong there; `remedy` says what to do, and may be empty.
    """

    def __init__(self, text: str, remedy: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.text}\n  {self.remedy}" if self.remedy else self.text


class TrialError(Exception):
    """A trial that failed: the server or a worker did not do its part. It becomes an outcome."""

    def __init__(self, text: str, remedy: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.remedy = remedy


class UnsupportedError(TrialError):
    """A trial that cannot run here: a package is missing, or the client cannot do that."""


class WireError(UnsupportedError):
    """The client does not speak the protocol that is asked for."""
