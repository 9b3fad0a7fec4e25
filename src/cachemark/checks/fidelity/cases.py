"""The cases, read from cases.toml: a server script, a load, and the known true times."""

from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

PositiveCount = Annotated[int, Meta(ge=1)]
Millis = Annotated[float, Meta(ge=0)]
_FLOOR_OPS, _FLOOR_OPS_LARGE = 500, 100
_LARGE_BYTES = 100_000


class CaseLoad(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The load of a case: reads that hit.

    A closed loop ends after `ops`; an open one has `rate` arrivals per second for `duration_ms`.
    `group`: the number of reads in a row that are one group, whose whole time is measured.
    """

    schedule: Literal["closed", "uniform", "poisson"] = "closed"
    ops: PositiveCount = 1
    group: PositiveCount = 1
    rate: Annotated[float, Meta(gt=0)] | None = None
    duration_ms: PositiveCount = 1
    callers: PositiveCount = 1
    timeout_ms: PositiveCount = 2000
    value_bytes: PositiveCount = 100
    keys: PositiveCount = 100

    @property
    def closed(self) -> bool:
        """Whether this is a closed loop."""
        return self.schedule == "closed"

    @property
    def expected_ops(self) -> int:
        """The number of operations in the window."""
        return self.ops if self.closed else round((self.rate or 0) * self.duration_ms / 1e3)


class Faults(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The injected faults, in operations: reads without a reply, and wrong values."""

    lost: int = 0
    wrong: int = 0


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One case; the fields are explained in cases.toml.

    `answer_ms` and `group_answer_ms` are by percentile.
    """

    name: str
    about: str
    script: str
    load: CaseLoad
    answer_ms: dict[float, float] = {}
    group_answer_ms: dict[float, float] = {}
    slack_ms: Millis = 0
    tell_apart_ms: Millis = 0
    faults: Faults = Faults()
    quick: bool = False


def floor_of(load: CaseLoad) -> Case:
    """The case for the floor: the server replies at once, with values of the same size."""
    ops = _FLOOR_OPS if load.value_bytes < _LARGE_BYTES else _FLOOR_OPS_LARGE
    return Case(
        name="floor",
        about="the server answers every read at once: the time of the client and the loopback",
        script="",
        load=CaseLoad(ops=ops, value_bytes=load.value_bytes, keys=load.keys),
    )


class KnownMiss(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A known bug of a library: the case that fails, and why. `client` is an id or a pattern.

    `sometimes`: the failure depends on a race, so the case may also pass.
    """

    client: str
    case: str
    reason: str
    sometimes: bool = False


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    case: list[Case]
    known: list[KnownMiss]


def cases() -> dict[str, Case]:
    """Every case by name, in the order of the file."""
    return {case.name: case for case in _file().case}


def known_failures() -> list[KnownMiss]:
    """The known failures in cases.toml."""
    return _file().known


@cache
def _file() -> _File:
    path = Path(__file__).with_name("cases.toml")
    return msgspec.toml.decode(path.read_bytes(), type=_File)
