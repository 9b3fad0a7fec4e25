"""Deviations of a server's protocol that a client must know before it is timed. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from cachemark.model.errors import UnsupportedError


class Quirk(msgspec.Struct, frozen=True, kw_only=True):
    """What a server does otherwise; `option`: what a client must be able to do, and is told to."""

    what: str
    option: str = ""


QUIRKS = {
    "trailing_space": Quirk(
        what="refuses commands that may take noreply without a space before the end of the line",
        option="trailing_space",
    ),
    "cas_in_get": Quirk(what="answers a plain get with a CAS number on each VALUE line"),
}


def options_for(quirks: Iterable[str], capabilities: Iterable[str], client: str) -> dict[str, str]:
    """The options with which a client can use such a server. Raises UnsupportedError."""
    able = set(capabilities)
    options: dict[str, str] = {}
    for name in quirks:
        quirk = QUIRKS[name]
        if not quirk.option:
            continue
        if quirk.option not in able:
            raise UnsupportedError(
                f"{client} cannot use this server, which {quirk.what}",
                f"a client with the capability {quirk.option}",
            )
        options[quirk.option] = "yes"
    return options
