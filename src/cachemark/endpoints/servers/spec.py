"""How an experiment names a server: `kind`, or `kind:details`."""

from __future__ import annotations

import difflib

import msgspec

from cachemark.model.errors import UnsupportedError, UsageError


class ServerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A server as named: its kind, its options, or whatever the kind reads its details as.

    `inner` is the server that a cluster has `count` of, or that a proxy stands before.
    """

    text: str
    kind: str
    details: str = ""
    options: dict[str, str] = {}
    inner: ServerSpec | None = None
    count: int = 1


class Missing(msgspec.Struct, frozen=True, kw_only=True):
    """Why a server cannot be started on this machine, and what would change that."""

    reason: str
    remedy: str

    def error(self) -> UnsupportedError:
        """The same, to be raised."""
        return UnsupportedError(self.reason, self.remedy)


def read_options(text: str, details: str, known: tuple[str, ...]) -> dict[str, str]:
    """The options in `io=events,threads=2`. Raises UsageError for one that is not known."""
    options: dict[str, str] = {}
    for pair in filter(None, details.split(",")):
        name, equals, value = pair.partition("=")
        if not equals or not value:
            raise UsageError(f"server {text!r}: {pair!r} is no option", "write option=value")
        if name not in known:
            near = difflib.get_close_matches(name, known, 1, 0.4)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise UsageError(
                f"server {text!r}: no option {name!r}", f"{hint}options: {', '.join(known)}"
            )
        options[name] = value
    return options


def positive(spec: ServerSpec, name: str) -> str | None:
    """An option that must be a whole number above 0, as text. Raises UsageError."""
    value = spec.options.get(name)
    if value is not None and (not value.isdecimal() or int(value) < 1):
        raise UsageError(f"server {spec.text!r}: {name}={value}", "a whole number of at least 1")
    return value
