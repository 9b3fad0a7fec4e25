"""Server specifications, as experiments write them: `kind` or `kind:details`."""

import math
import re

import msgspec

from cachemark.model.errors import UnsupportedError, UsageError, similar_name
from cachemark.model.units import MIB, parse_memory

# At most 18 digits: every computer can represent the number.
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


MEMORY_OPTION = "memory"


class MemoryModel(msgspec.Struct, frozen=True, kw_only=True):
    """How much memory a server needs for items: an estimate, within about 10 %.

    `default` is the limit without the option. An item takes its key and value and `item_bytes`,
    times `rounding`. `cachemark memory` measures the true figures.
    """

    default: str = "64m"
    # memcached's: header, cas number, line ends; then chunks of sizes that grow by a quarter.
    item_bytes: int = 57
    rounding: float = 1.1

    def needed_bytes(self, items: int, data_bytes: int) -> int:
        """The memory for items whose keys and values have `data_bytes` in all."""
        return math.ceil((data_bytes + items * self.item_bytes) * self.rounding)


def check_memory(spec: ServerSpec, *, least: int) -> None:
    """Refuse a `memory` that is no size, or below `least` bytes. Raises UsageError."""
    text = spec.options.get(MEMORY_OPTION)
    if text is None:
        return
    if parse_memory(text, f"server {spec.text!r}: {MEMORY_OPTION}") < least:
        raise UsageError(
            f"server {spec.text!r}: {MEMORY_OPTION}={text} is too little",
            f"at least {least // 1024}k" if least < MIB else f"at least {least // MIB}m",
        )


def memory_bytes(text: str) -> int:
    """A checked `memory` in bytes."""
    return parse_memory(text, MEMORY_OPTION)


def memory_mib(text: str) -> int:
    """A checked `memory` in whole MiB, for servers that take nothing else."""
    return memory_bytes(text) // MIB
