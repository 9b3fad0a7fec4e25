"""Statistics of a trace's traffic, as the engine's `trace show` prints them."""

import msgspec


class TraceOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """Where the records come from. `sampled`: the file has one of this number of keys."""

    source: str
    keys: str
    sampled: int = 1


class TraceSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a file by name, and the omissions by reason.

    It has `records`, from `operations` before the sampling of keys. `server` is the increase of the
    server's own counters meanwhile; empty if unknown.
    """

    records: int = 0
    operations: dict[str, int] = {}
    left_out: dict[str, int] = {}
    other_lines: dict[str, int] = {}
    server: dict[str, int] = {}
    reconnects: int = 0
    unused_columns: list[str] = []


class SizeDistribution(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes in bytes, or other whole numbers. `quantiles`: a part, and its largest size."""

    count: int
    mean: float
    max: int
    quantiles: list[tuple[float, int]]

    def at(self, part: float) -> int:
        """The largest size of a part, which is one of the quantiles' parts."""
        return next(size for of, size in self.quantiles if of == part)


class Reads(msgspec.Struct, frozen=True, kw_only=True):
    """Reads by their result; `unknown` if the trace does not say."""

    hits: int
    misses: int
    unknown: int

    @property
    def hit_ratio(self) -> float | None:
        """The hits' share of all reads with a known result; None if there are none."""
        known = self.hits + self.misses
        return self.hits / known if known else None


class TtlShare(msgspec.Struct, frozen=True, kw_only=True):
    """An expiry time in seconds, and its part of all writes."""

    ttl_s: int
    share: float


class TtlStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """The expiry times of writes; `without` never expire."""

    writes: int
    without: int
    seconds: SizeDistribution
    common: list[TtlShare]


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A number and its standard error, which is 0 if all keys were counted."""

    value: float
    error: float


class Popularity(msgspec.Struct, frozen=True, kw_only=True):
    """A Zipf law for the keys with at least `least_count` requests.

    `error` is the exponent's standard error, `distance` the Kolmogorov–Smirnov distance.
    """

    exponent: float
    error: float
    distance: float
    keys: int
    least_count: int


class RankShare(msgspec.Struct, frozen=True, kw_only=True):
    """The share of all requests for the key of a rank."""

    rank: float
    share: float


class KeyStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Keys: `sampled` is the part that was followed. `most_live_…` are the largest values."""

    sampled: float
    keys: Estimate
    one_hit_wonders: Estimate
    bytes: Estimate
    without_size: Estimate
    most_live_items: Estimate
    most_live_bytes: Estimate
    popularity: Popularity | None
    ranks: list[RankShare]


class HotKey(msgspec.Struct, frozen=True, kw_only=True):
    """A popular key: its true count is from `count - error` to `count`."""

    key: str
    count: int
    error: int


class MultigetStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Keys of each request that reads; `joined_keys` were read together with others."""

    keys: SizeDistribution
    multigets: int
    joined_keys: int


class Dispersion(msgspec.Struct, frozen=True, kw_only=True):
    """Requests in windows of one width: variance / mean is `index`, largest / mean is `peak`."""

    window_s: float
    windows: int
    mean: float
    index: float
    peak: float


class TimeWindow(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of a window, and the items alive at its end."""

    operations: dict[str, int]
    reads: Reads
    value_bytes: int
    new_keys: float
    live_items: float
    live_bytes: float


class TraceStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of a trace's traffic. `duration_s` and `resolution_s` are 0 without times."""

    requests: int
    operations: dict[str, int]
    reads: Reads
    duration_s: float
    resolution_s: float
    key_bytes: SizeDistribution
    read_value_bytes: SizeDistribution
    written_value_bytes: SizeDistribution
    ttls: TtlStatistics
    keys: KeyStatistics
    hot_keys: list[HotKey]
    top_shares: list[tuple[int, float]]
    multigets: MultigetStatistics
    bursts: list[Dispersion]
    window_s: float
    timeline: list[TimeWindow]


class ShownTrace(msgspec.Struct, frozen=True, kw_only=True):
    """A trace, and its statistics."""

    format: str
    origin: TraceOrigin
    summary: TraceSummary
    statistics: TraceStatistics


class WrittenTrace(msgspec.Struct, frozen=True, kw_only=True):
    """A trace that was written from `lines`; `bytes` is the size of the file."""

    format: str
    origin: TraceOrigin
    lines: int
    records: int
    bytes: int
    summary: TraceSummary


class ToldSection(msgspec.Struct, frozen=True, kw_only=True):
    """A table and the notes below it."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    notes: list[str]
    prose: bool


class ToldTrace(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="told"):
    """The lines and tables for a terminal, and the figures for --json."""

    about: str
    title: str
    facts: list[tuple[str, str]]
    warnings: list[str]
    sections: list[ToldSection]
    figures: msgspec.Raw
