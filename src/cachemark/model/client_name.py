"""A client as an experiment and a cell name it, parsed once.

It is `id`, `id@VERSION` or `id@PATH` (another version or build), `id@defaults` (the library's own
settings), each with `?option=value&…` behind it, or `command:PROGRAM ARGS` (any worker). The second
label of a client that is played twice ends in `#again`.
"""

import msgspec

NATIVE = "native"
# The label of the client that is played a second time (`twice`, an A/A test).
REPEAT_SUFFIX = "#again"
_COMMAND = "command:"
_DEFAULTS_SUFFIX = "@defaults"
_NULL = "null"


class ClientName(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a client's name; of a command, `id` has all of it.

    `version` is empty for the library that is set up; `options` is the text behind `?`.
    """

    id: str
    version: str = ""
    own_settings: bool = False
    options: str = ""
    again: bool = False

    @property
    def is_command(self) -> bool:
        """Whether the name is a command that starts a worker."""
        return self.id.startswith(_COMMAND)

    @property
    def is_native(self) -> bool:
        """Whether it is the native client, in any version and with any options."""
        return self.id == NATIVE

    @property
    def is_null(self) -> bool:
        """Whether it is `null`, the loop without a library."""
        return not self.is_command and self.id.partition("/")[2] == _NULL

    @property
    def with_shared_settings(self) -> str:
        """The same client with the settings that all clients share, without the mark `#again`."""
        version = f"@{self.version}" if self.version else ""
        options = f"?{self.options}" if self.options else ""
        return f"{self.id}{version}{options}"


def parse_client_name(text: str) -> ClientName:
    """The parts of a client's name. Any text is one; the registry knows which clients exist.

    >>> parse_client_name("php/memcached@3.1@defaults?nodelay=1").version
    '3.1'
    """
    once = without_repeat(text)
    again = once != text
    if once.startswith(_COMMAND):
        return ClientName(id=once, again=again)
    name, _, options = once.partition("?")
    shared = name.removesuffix(_DEFAULTS_SUFFIX)
    library, _, version = shared.partition("@")
    return ClientName(
        id=library, version=version, own_settings=shared != name, options=options, again=again
    )


def without_repeat(text: str) -> str:
    """A client's name without the mark `#again`."""
    return text.removesuffix(REPEAT_SUFFIX)
