"""Software that users get from its authors: the lines of `cachemark setup` about it."""

from collections.abc import Iterator

import msgspec

from cachemark.checks.fidelity.tools import TOOLS, Tool
from cachemark.endpoints.clients import registry
from cachemark.endpoints.originals import ORIGINALS, found_here
from cachemark.host import process

PEERS_LIST = "peers"
ORIGINALS_LIST = "originals"


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a list: what is on this machine, or how to get it."""

    ready: bool
    name: str
    text: str


def _peers() -> Iterator[Listed]:
    for tool in TOOLS.values():
        program = tool.program()
        yield Listed(ready=program is not None, name=tool.name, text=program or _remedy(tool))


def _remedy(tool: Tool) -> str:
    if tool.package:
        return f"`cachemark setup --install {PEERS_LIST}` installs Debian's {tool.package}"
    tried = f" (tried: {tool.tried})" if tool.tried else ""
    return f"build it as {tool.home} says{tried}, and put {tool.programs[0]} on PATH"


def _originals() -> Iterator[Listed]:
    clients = registry(process.binary_path())
    for original in ORIGINALS:
        found = found_here(original, clients)
        yield Listed(ready=found.ready, name=original.name, text=found.text)


# No languages: the other load generators, which `cachemark fidelity --tool` runs; and the servers
# and libraries of the five original benchmarks.
LISTS = {PEERS_LIST: _peers, ORIGINALS_LIST: _originals}


def packages(name: str) -> list[str]:
    """Debian's packages for the missing software of a list."""
    tools = TOOLS.values() if name == PEERS_LIST else ()
    return [tool.package for tool in tools if tool.package and not tool.program()]


def list_of(software: str) -> str:
    """The name of the list that has this software; empty if none has."""
    if software in TOOLS:
        return PEERS_LIST
    names = {name for one in ORIGINALS for name in (one.name, one.name.rpartition("/")[2])}
    return ORIGINALS_LIST if software.lower() in names else ""
