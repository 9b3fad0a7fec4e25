"""What a server takes for what its users have stored. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class Footprint(msgspec.Struct, frozen=True, kw_only=True):
    """User bytes are keys and values; what the server or the system does not tell is None.

    `own_bytes` is the server's own account, which means something else in each server;
    `rss_empty_bytes` is what it took before anything was stored.
    """

    user_bytes: float
    own_bytes: float | None = None
    rss_bytes: float | None = None
    rss_empty_bytes: float | None = None

    @property
    def growth_bytes(self) -> float | None:
        """What it took more than when it was empty; None where that is nothing."""
        if self.rss_bytes is None or self.rss_empty_bytes is None:
            return None
        growth = self.rss_bytes - self.rss_empty_bytes
        return growth if growth > 0 else None

    def of(self, whole_bytes: float | None) -> float | None:
        """The users' part of so many bytes."""
        return self.user_bytes / whole_bytes if whole_bytes else None


def mean(parts: Sequence[Footprint]) -> Footprint:
    """The mean of each; None where one is."""

    def of(name: str) -> float | None:
        values = [getattr(part, name) for part in parts]
        return None if None in values else sum(values) / len(values)

    return Footprint(
        user_bytes=of("user_bytes") or 0.0,
        own_bytes=of("own_bytes"),
        rss_bytes=of("rss_bytes"),
        rss_empty_bytes=of("rss_empty_bytes"),
    )
