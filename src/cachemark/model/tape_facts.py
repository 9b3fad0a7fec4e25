"""The facts of a played tape that its outcome keeps. Readers ignore unknown fields."""

from typing import Literal

import msgspec

Dependence = Literal["never", "covered", "open"]


class KeyReuse(msgspec.Struct, frozen=True, kw_only=True):
    """How the operations of a tape use the same keys.

    `used_keys` is the number of keys. `fills`: reads store the values that they do not find. `kept`
    says how hits depend on earlier operations if the server keeps all items, `lost` if it may evict
    items or they expire. `never`: they do not. `covered`: they do, and a longer tape would use
    practically the same keys. `open`: a longer tape would use more keys, so that a repeated tape
    hits more often than new operations would.
    """

    used_keys: int
    fills: bool
    kept: Dependence
    lost: Dependence


class TraceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """How a tape differs from the trace that it was made from.

    `left_out` are operations by reason, `other_lines` are lines without an operation, by type.
    `unfilled` is the number of gets that do not fill the cache, since no line has the size of their
    value. `whole_seconds`: the arrivals within each second are random.
    """

    format: str
    lines: int
    left_out: dict[str, int] = {}
    other_lines: dict[str, int] = {}
    unused_columns: list[str] = []
    unfilled: int = 0
    whole_seconds: bool = False


class TapeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The tape that was played; `reuse` is missing in old outcomes."""

    seed: int
    sha256: str
    ops: int
    keys: int
    period_ns: int
    arguments: list[str]
    reuse: KeyReuse | None = None
    trace: TraceFacts | None = None
