"""Protocol deviations of servers that a client must know before it is timed. Pure."""

from collections.abc import Collection, Iterable

import msgspec

from cachemark.model.errors import UnsupportedError


class Quirk(msgspec.Struct, frozen=True, kw_only=True):
    """A deviation. `option`: a capability that a client needs, and the option that turns it on."""

    what: str
    option: str = ""


QUIRKS = {
    "trailing_space": Quirk(
        what="refuses commands that may take noreply without a space before the end of the line",
        option="trailing_space",
    ),
    "cas_in_get": Quirk(what="answers a plain get with a CAS number on each VALUE line"),
}


def options_for(
    quirks: Iterable[str], capabilities: Collection[str], client: str
) -> dict[str, str]:
    """The client options that a server with these quirks needs. Raises UnsupportedError."""
    options: dict[str, str] = {}
    for name in quirks:
        quirk = QUIRKS[name]
        if not quirk.option:
            continue
        if quirk.option not in capabilities:
            raise UnsupportedError(
                f"{client} cannot use this server, which {quirk.what}",
                f"a client with the capability {quirk.option}",
            )
        options[quirk.option] = "yes"
    return options
