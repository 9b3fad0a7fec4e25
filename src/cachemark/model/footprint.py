"""How much memory a server needs for the data that its users have stored. Pure."""

from collections.abc import Sequence

import msgspec


class Footprint(msgspec.Struct, frozen=True, kw_only=True):
    """Memory of a server. None: not available.

    `user_bytes` are keys and values. `reported_bytes` is the server's own `bytes`, which each
    server defines in its own way. `rss_empty_bytes` is the resident memory of the empty server.
    """

    user_bytes: float
    reported_bytes: float | None = None
    rss_bytes: float | None = None
    rss_empty_bytes: float | None = None

    @property
    def growth_bytes(self) -> float | None:
        """Growth of the resident memory since the server was empty; None if it did not grow."""
        if self.rss_bytes is None or self.rss_empty_bytes is None:
            return None
        growth = self.rss_bytes - self.rss_empty_bytes
        return growth if growth > 0 else None

    def of(self, whole_bytes: float | None) -> float | None:
        """The fraction of `whole_bytes` that is user data; None if that is 0 or unknown."""
        return self.user_bytes / whole_bytes if whole_bytes else None


def mean(parts: Sequence[Footprint]) -> Footprint:
    """The mean of each field; None if one of the values is None."""

    def of(name: str) -> float | None:
        values = [getattr(part, name) for part in parts]
        return None if None in values else sum(values) / len(values)

    return Footprint(
        user_bytes=of("user_bytes") or 0.0,
        reported_bytes=of("reported_bytes"),
        rss_bytes=of("rss_bytes"),
        rss_empty_bytes=of("rss_empty_bytes"),
    )
