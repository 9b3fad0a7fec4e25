"""Server specifications, as experiments write them: `kind` or `kind:details`."""

import re

import msgspec

from cachemark.model.errors import UnsupportedError, UsageError, similar_name

# A number that no computer can reach is refused.
_POSITIVE = re.compile("0*[1-9][0-9]{0,17}")
LOOPBACK = "127.0.0.1"


class ServerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed specification. Each kind reads its own `details`.

    `inner` is the server that a cluster has `count` times, or the server behind a proxy. `listen`
    is the IPv4 address of this machine on which the server accepts connections. `port` is
    memcached's port; 0: the system picks one.
    """

    text: str
    kind: str
    details: str = ""
    options: dict[str, str] = {}
    inner: "ServerSpec | None" = None
    count: int = 1
    listen: str = LOOPBACK
    port: int = 0

    @property
    def innermost(self) -> "ServerSpec":
        """The server itself, behind proxies, or one of a cluster."""
        return self.inner.innermost if self.inner else self


class Missing(msgspec.Struct, frozen=True, kw_only=True):
    """Why a server cannot be started on this machine, and what to do about it."""

    reason: str
    remedy: str

    def error(self) -> UnsupportedError:
        """The exception to raise."""
        return UnsupportedError(self.reason, self.remedy)


def read_options(text: str, details: str, known: tuple[str, ...]) -> dict[str, str]:
    """The options in `io=events,threads=2`. Raises UsageError for an unknown one."""
    options: dict[str, str] = {}
    for pair in filter(None, details.split(",")):
        name, equals, value = pair.partition("=")
        if not equals or not value:
            raise UsageError(f"server {text!r}: {pair!r} is not an option", "write option=value")
        if name not in known:
            raise UsageError(
                f"server {text!r}: no option {name!r}",
                f"{similar_name(name, known)}options: {', '.join(known)}",
            )
        options[name] = value
    return options


def positive(spec: ServerSpec, name: str) -> str | None:
    """The text of an option that must be an integer above 0; None if absent. Raises UsageError."""
    value = spec.options.get(name)
    if value is not None and not _POSITIVE.fullmatch(value):
        raise UsageError(f"server {spec.text!r}: {name}={value}", "write an integer of at least 1")
    return value
