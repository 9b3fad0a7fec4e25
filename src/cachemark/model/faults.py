"""The faults, read from faults.toml: what happens to the server, how, and for how long."""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from cachemark.model.errors import UsageError, similar_name
from cachemark.model.protocol_results import GiveUp, Way
from cachemark.model.shipped_rows import shipped_rows
from cachemark.model.units import parse_ms

_DURATION = re.compile(r"[0-9]+(\.[0-9]+)?(ms|s|m)")
_LONGEST_MS = 600_000
FaultMillis = Annotated[int, Meta(ge=1)]
ProxyFault = dict[str, str | bool | int | float]
# The component that fails.
FaultGroup = Literal["server", "network", "replies", "callers", "TLS"]
# The certificate has no trusted authority, is for another host, or is no longer valid.
BadCertificate = Literal["untrusted", "other-host", "expired"]


class _Maker(msgspec.Struct, frozen=True, tag_field="kind", forbid_unknown_fields=True):
    """How to make a fault."""


class Freeze(_Maker, frozen=True, tag="freeze"):
    """Stop the server's process, then continue it."""


class Restart(_Maker, frozen=True, tag="restart"):
    """Kill the server, then start an empty one on the same port."""


class MoveName(_Maker, frozen=True, tag="move-name"):
    """Kill the server; then its name resolves to the address of another, empty one."""


class LoseOne(_Maker, frozen=True, tag="lose-one"):
    """Lose one of three servers; it comes back, with or without its data."""

    keeps_data: bool


class Impostor(_Maker, frozen=True, tag="impostor"):
    """Kill a server with TLS, and start another one with a bad certificate in its place."""

    certificate: BadCertificate


class Proxy(_Maker, frozen=True, tag="proxy"):
    """The proxy between client and server makes the fault; `fault` is its command."""

    fault: ProxyFault


class Caller(_Maker, frozen=True, tag="caller"):
    """The callers give up some of their calls, while the proxy delays all replies."""

    way: Way
    every: Annotated[int, Meta(ge=1)]
    after_ms: FaultMillis
    delay_ms: FaultMillis


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One fault; the fields are explained in faults.toml."""

    name: str
    group: FaultGroup
    about: str
    make: Freeze | Restart | MoveName | LoseOne | Impostor | Proxy | Caller
    during_ms: FaultMillis
    before_ms: FaultMillis = 2000
    after_ms: FaultMillis = 5000
    after_at_most_ms: FaultMillis = 40_000
    wires: tuple[str, ...] = ("text", "binary", "meta")
    serves: bool = False
    quick: bool = False

    @property
    def gives_up(self) -> GiveUp | None:
        """The way in which callers give up calls, for the worker."""
        if not isinstance(self.make, Caller):
            return None
        return GiveUp(
            way=self.make.way,
            every=self.make.every,
            after_ms=self.make.after_ms,
            begin_ms=self.before_ms,
            end_ms=self.before_ms + self.during_ms,
        )

    @property
    def longest_ms(self) -> int:
        """The length of a window in ms if the client does not recover."""
        return self.before_ms + self.during_ms + max(self.after_ms, self.after_at_most_ms)

    @property
    def needs_cluster(self) -> bool:
        """Whether the fault needs a client of several servers."""
        return isinstance(self.make, LoseOne)

    @property
    def can_be_served(self) -> bool:
        """Whether a client can serve most calls during the fault."""
        return self.serves or self.needs_cluster

    @property
    def needs_tls(self) -> bool:
        """Whether the fault needs a client that speaks TLS."""
        return isinstance(self.make, Impostor)


@cache
def all_faults() -> dict[str, Fault]:
    """Every fault by name, in the order of the file."""
    rows = shipped_rows(Path(__file__).with_name("faults.toml"), "fault", Fault)
    return {fault.name: fault for fault in rows}


def fault_named(name: str) -> Fault:
    """The fault of a name: from the file, or with another duration, such as `frozen-30s`.

    Raises UsageError.
    """
    known = all_faults()
    if name in known:
        return known[name]
    base, _, duration = name.rpartition("-")
    if base and _DURATION.fullmatch(duration):
        return _lasting(base, duration)
    if any(name == _family(fault) for fault in known.values()):
        raise UsageError(f"fault {name!r}: it has no duration", "such as --for 30s")
    raise UsageError(f"no fault {name!r}", f"{similar_name(name, known)}faults: {', '.join(known)}")


def chosen_faults(names: Sequence[str], *, quick: bool, lasting: str = "") -> list[Fault]:
    """The faults that were named, or all, or the quick ones; in the order of the file.

    With `lasting`, such as `30s`, each has this duration. Raises UsageError.
    """
    chosen = names or [fault.name for fault in all_faults().values() if fault.quick or not quick]
    if lasting and not names:
        raise UsageError(f"--for {lasting}: no fault is named", "such as --fault frozen")
    if lasting:
        known = all_faults()
        chosen = [_family(known[name]) if name in known else name for name in chosen]
        return [_lasting(name, lasting) for name in dict.fromkeys(chosen)]
    faults = {name: fault_named(name) for name in chosen}
    order = list(all_faults())
    return sorted(faults.values(), key=lambda f: order.index(f.name) if f.name in order else -1)


def _lasting(base: str, duration: str) -> Fault:
    """The fault `base`, or a fault of the family `base`, with this duration.

    Raises UsageError.
    """
    during_ms = parse_ms(duration, "--for")
    if not 1 <= during_ms <= _LONGEST_MS:
        raise UsageError(f"fault {base!r} for {duration}", "write 1ms to 10m")
    of_family = (fault for fault in all_faults().values() if _family(fault) == base)
    fault = all_faults().get(base) or next(of_family, None)
    if fault is None:
        return fault_named(base)
    about = fault.about.replace(_words(fault.during_ms), _words(during_ms), 1)
    if during_ms != fault.during_ms and about == fault.about:
        raise UsageError(f"fault {fault.name!r} has no duration: {fault.about}", "name another one")
    return msgspec.structs.replace(
        fault, name=f"{base}-{duration}", about=about, during_ms=during_ms
    )


def _family(fault: Fault) -> str:
    """The name without its duration: `frozen` for `frozen-1s`, which lasts 1 s."""
    base, _, end = fault.name.rpartition("-")
    is_duration = _DURATION.fullmatch(end) and parse_ms(end, fault.name) == fault.during_ms
    return base if is_duration else fault.name


def _words(during_ms: int) -> str:
    return f"{during_ms / 1e3:g} s"
