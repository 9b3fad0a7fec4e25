"""Errors that a user can fix. Each has a text (where and what) and a remedy (what to do)."""

import difflib
import re
from collections.abc import Generator, Iterable
from contextlib import contextmanager

import msgspec

# The errors that decoding untrusted JSON or TOML can raise. Besides msgspec's own: ValueError for
# text that is not UTF-8 and for huge numbers, RecursionError for deeply nested brackets.
DECODE_ERRORS = (msgspec.MsgspecError, ValueError, RecursionError)


def with_remedy(text: str, remedy: str) -> str:
    """An error as cachemark prints it: its text, and the remedy, if any, on the next line."""
    return f"{text}\n  {remedy}" if remedy else text


def similar_name(name: str, known: Iterable[str]) -> str:
    """The question `did you mean 'NAME'? ` with the most similar known name; empty without one."""
    names = list(known)
    near = [one for one in names if one.rpartition("/")[2] == name]
    near = near or difflib.get_close_matches(name, names, 1)
    return f"did you mean {near[0]!r}? " if near else ""


class UsageError(Exception):
    """Invalid input. The CLI prints it as one message and exits with status 2.

    `text` says where and what is wrong; `remedy` says what to do, and may be empty.
    """

    def __init__(self, text: str, remedy: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.remedy = remedy

    def __str__(self) -> str:
        return with_remedy(self.text, self.remedy)


@contextmanager
def refusing(what: str, remedy: str = "", *, decodes: bool = False) -> Generator[None]:
    """Raise UsageError in place of OSError, and of DECODE_ERRORS if something is decoded.

    `what` comes before the error's own text, such as `PATH: cannot be written`.
    """
    kinds = (OSError, *DECODE_ERRORS) if decodes else (OSError,)
    try:
        yield
    except kinds as error:
        raise UsageError(f"{what}: {error}", remedy) from error


def engine_error_text(stderr: str) -> str:
    """The text that the engine printed about an error, without its own name and its help."""
    text = stderr.strip().removeprefix("cachemark-engine: ").removeprefix("error: ")
    return re.split("\n\n(?:Usage:|For more information)", text)[0]


class TrialError(Exception):
    """A trial failed because of the server or a worker. It is recorded as a `failed` outcome."""

    def __init__(self, text: str, remedy: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.remedy = remedy


class HostLostError(TrialError):
    """A host of a run over several does not answer any more. `host` is its name."""

    def __init__(self, host: str, text: str) -> None:
        super().__init__(text)
        self.host = host


class WorkerCrashedError(TrialError):
    """A worker ended by a signal of its own doing, such as that of a failed assertion."""


class UnsupportedError(TrialError):
    """A trial cannot run here: a package is missing, or the client lacks a capability."""


class UnsupportedWireError(UnsupportedError):
    """The client does not speak the wire protocol that the load asks for."""
