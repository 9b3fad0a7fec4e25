"""The settings of JMH, and its results."""

from typing import Any, Literal

import msgspec

Mode = Literal["throughput", "latency"]
JmhOperation = Literal["get", "gets", "gat", "mget", "set", "replace", "touch", "set-get"]
Data = Literal["random", "original"]
Wire = Literal["text", "binary"]
# In one operation: four keys, each set and then read.
SET_GET_COMMANDS = 8


class JmhSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings for JMH. Each operation and value size is a separate benchmark."""

    operations: tuple[JmhOperation, ...] = ("get", "set")
    modes: tuple[Mode, ...] = ("throughput", "latency")
    wires: tuple[Wire, ...] = ("text",)
    data: Data = "random"
    value_sizes: tuple[int, ...] = (100,)
    keys: int = 1000
    batch: int = 10
    same_keys: bool = False
    depth: int = 1
    threads: tuple[int, ...] = (1,)
    connection: Literal["shared", "own"] = "shared"
    timeout_ms: int = 1000
    forks: int = 1
    warmups: int = 5
    iterations: int = 5
    iteration_ms: int = 1000
    profilers: tuple[str, ...] = ()


# memcached-java-clients-benchmark: its operations, data, threads and iterations. Its author's later
# figures have 128 threads. It waited for answers without a limit, or for seconds.
ORIGINAL = JmhSettings(
    operations=("set-get", "mget"),
    wires=("text", "binary"),
    data="original",
    value_sizes=(12,),
    keys=5000,
    batch=50,
    same_keys=True,
    depth=8,
    threads=(32, 128),
    timeout_ms=10_000,
    warmups=20,
    iterations=20,
)


class JmhMetric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric of JMH's JSON; an unknown error is the string NaN."""

    score: float
    error: float | str = msgspec.field(name="scoreError")
    unit: str = msgspec.field(name="scoreUnit")
    percentiles: dict[str, float] = msgspec.field(name="scorePercentiles")
    samples: list[list[list[tuple[float, int]]]] = msgspec.field(
        name="rawDataHistogram", default_factory=list
    )

    @property
    def calls(self) -> int:
        """The number of calls that were sampled."""
        return sum(count for fork in self.samples for times in fork for _, count in times)


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark in one mode, as in JMH's JSON."""

    benchmark: str
    mode: str
    threads: int
    params: dict[str, str]
    metric: JmhMetric = msgspec.field(name="primaryMetric")


class JmhMeasurement(msgspec.Struct, frozen=True, kw_only=True):
    """A benchmark of a client: JMH's entries, raw and decoded, or why there are none."""

    client: str
    entries: list[Any]
    results: list[Result]
    failure: str = ""
