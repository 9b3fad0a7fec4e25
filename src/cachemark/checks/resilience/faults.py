"""The faults, read from faults.toml: what happens to the server, who makes it, and for how long."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from cachemark.model.errors import UsageError
from cachemark.model.protocol_run import GiveUp, Way

Millis = Annotated[int, Meta(ge=1)]
ProxyFault = dict[str, str | bool | int | float]
# What fails.
Group = Literal["server", "network", "replies", "callers", "TLS"]
# Signed by nobody who is trusted, made for another host, or no longer valid.
BadCertificate = Literal["untrusted", "other-host", "expired"]


class Freeze(
    msgspec.Struct, frozen=True, tag="freeze", tag_field="kind", forbid_unknown_fields=True
):
    """The server's process is stopped, and continued."""


class Restart(
    msgspec.Struct, frozen=True, tag="restart", tag_field="kind", forbid_unknown_fields=True
):
    """The server is killed; an empty one follows on the same port."""


class MoveName(
    msgspec.Struct, frozen=True, tag="move-name", tag_field="kind", forbid_unknown_fields=True
):
    """The server is killed; then its name resolves to the address of another, empty one."""


class LoseOne(
    msgspec.Struct, frozen=True, tag="lose-one", tag_field="kind", forbid_unknown_fields=True
):
    """One of three servers is lost and comes back, with its data or without."""

    keeps_data: bool


class Impostor(
    msgspec.Struct, frozen=True, tag="impostor", tag_field="kind", forbid_unknown_fields=True
):
    """The server speaks TLS and is killed; another one with a bad certificate is in its place."""

    certificate: BadCertificate


class Proxy(msgspec.Struct, frozen=True, tag="proxy", tag_field="kind", forbid_unknown_fields=True):
    """A proxy between client and server makes it; `fault` is its command."""

    fault: ProxyFault


class Caller(
    msgspec.Struct, frozen=True, tag="caller", tag_field="kind", forbid_unknown_fields=True
):
    """The callers give up some of their calls, while the proxy delays all replies."""

    way: Way
    every: Annotated[int, Meta(ge=1)]
    after_ms: Millis
    delay_ms: Millis


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One fault; the fields are explained in faults.toml."""

    name: str
    group: Group
    about: str
    make: Freeze | Restart | MoveName | LoseOne | Impostor | Proxy | Caller
    during_ms: Millis
    before_ms: Millis = 2000
    after_ms: Millis = 5000
    after_at_most_ms: Millis = 40_000
    wires: tuple[str, ...] = ("text", "binary", "meta")
    serves: bool = False
    quick: bool = False

    @property
    def gives_up(self) -> GiveUp | None:
        """What it asks of the callers."""
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
        """How long a client plays that does not recover."""
        return self.before_ms + self.during_ms + max(self.after_ms, self.after_at_most_ms)

    @property
    def needs_cluster(self) -> bool:
        """Whether only a client of several servers can be played."""
        return isinstance(self.make, LoseOne)

    @property
    def can_be_served(self) -> bool:
        """Whether most calls in it need not fail."""
        return self.serves or self.needs_cluster

    @property
    def needs_tls(self) -> bool:
        """Whether only a client that speaks TLS can be played."""
        return isinstance(self.make, Impostor)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    fault: list[Fault]


@cache
def all_faults() -> dict[str, Fault]:
    """Every fault by name, in the order of the file."""
    path = Path(__file__).with_name("faults.toml")
    return {fault.name: fault for fault in msgspec.toml.decode(path.read_bytes(), type=_File).fault}


def chosen_faults(names: Sequence[str], *, quick: bool) -> list[Fault]:
    """The faults that were named, or all, or the quick ones. Raises UsageError."""
    known = all_faults()
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1, 0.4)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise UsageError(f"no fault {name!r}", f"{hint}faults: {', '.join(known)}")
    return [
        fault
        for name, fault in known.items()
        if (name in names if names else fault.quick or not quick)
    ]
