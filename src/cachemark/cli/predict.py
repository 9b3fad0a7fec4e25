"""`cachemark predict`: how many reads of a trace miss with more or less memory."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cachemark.checks.prediction_check import (
    PlayedTrace,
    check,
    checked_servers,
    play_speed,
    servers_of,
)
from cachemark.cli.output import progress_lines
from cachemark.cli.trace import TraceReading, show_document
from cachemark.endpoints.servers import ServerSpec
from cachemark.model.errors import UsageError
from cachemark.model.miss_ratio import CheckedTrace, PredictedTrace, PredictionCheck
from cachemark.model.trace_statistics import ToldTrace
from cachemark.runs.trace_files import predicted_source, predicted_trace

_MOST_CHECKS = 10


@dataclass(frozen=True)
class CheckOptions:
    """Whether to play the trace against real servers, too."""

    sizes: Annotated[
        int,
        Parameter(
            name="--check",
            help="play the trace against real servers at this number of sizes, and print predicted "
            "beside measured",
        ),
    ] = 0
    server: Annotated[
        tuple[str, ...],
        Parameter(
            help="the servers of --check: memcached and embedded, with their options; default: "
            "the servers of --policies"
        ),
    ] = ()

    def specs(self, policies: str) -> list[ServerSpec]:
        """The servers to play against. Raises UsageError if they do not go with the policies."""
        if not 0 <= self.sizes <= _MOST_CHECKS:
            raise UsageError(f"--check {self.sizes}: 0 to {_MOST_CHECKS} sizes", "such as 2")
        if self.server and not self.sizes:
            raise UsageError("--server: nothing is played", "add --check 2")
        if not self.sizes:
            return []
        predicted = policies.split(",")
        specs = checked_servers(self.server or servers_of(predicted), predicted)
        if not specs:
            raise UsageError("--check: no server has the policy lru", "add memcached to --policies")
        return specs


def predict(
    source: Annotated[
        Path, Parameter(help="the trace; also .zst and .gz; or what `record --snapshot` wrote")
    ],
    *,
    memory: Annotated[str, Parameter(help="sizes: 64m,256m,1g, or 64m..4g, which is ten sizes")],
    policies: Annotated[
        str, Parameter(help="memcached (since 1.6.34), memcached-1.6.33 (before), embedded, lru")
    ] = "memcached,embedded,lru",
    sample: Annotated[
        str,
        Parameter(
            help="the keys to follow: 1/100, all, or auto: about 65,000, and for memcached as many "
            "as it needs"
        ),
    ] = "auto",
    warm_up: Annotated[
        float, Parameter(help="the first part of the trace, which fills the caches: not counted")
    ] = 0.2,
    reading: Annotated[TraceReading | None, Parameter(name="*")] = None,
    checking: Annotated[CheckOptions | None, Parameter(name="*")] = None,
    out: Annotated[Path | None, Parameter(help="a page with the curve, .html")] = None,
    json: Annotated[bool, Parameter(help="print the figures as JSON")] = False,
) -> int:
    """Predict how many reads miss with more or less memory, by simulating servers on a trace.

    memcached is simulated with expiry, slab classes, HOT, WARM and COLD, and pages that move; the
    embedded server by its own store; LRU is a reference. If only a part of the keys is followed,
    each figure has its standard error. A snapshot has no reads to count: it tells for how long
    memory lies unread. docs/size-a-fleet.md lists the assumptions.
    """
    words = (reading or TraceReading()).words
    asked = [f"--sample={sample}", f"--warm-up={warm_up!r}"]
    checking = checking or CheckOptions()
    # Before the work, which may take minutes.
    specs = checking.specs(policies)
    given = [*words, *asked, f"--policies={policies}", f"--memory={memory}", "--", str(source)]
    predicted = predicted_source(["trace", "predict", *given])
    if isinstance(predicted, ToldTrace):
        if specs:
            raise UsageError("--check: a snapshot has no requests to play", "record a trace")
        return _show(predicted, out, json=json)
    checks: list[PredictionCheck] = []
    if specs:
        trace = _as_played(checking.sizes, source, words, asked, predicted)
        with progress_lines() as progress:
            checks = [each for spec in specs for each in check(spec, trace, progress)]
    return _show(CheckedTrace(predicted=predicted, checks=checks), out, json=json)


def _as_played(
    number: int, source: Path, words: list[str], asked: list[str], predicted: PredictedTrace
) -> PlayedTrace:
    """The trace with a prediction for some of the sizes, at the speed at which it is played."""
    if predicted.origin.sampled > 1:
        text = f"--check: the trace has one key of {predicted.origin.sampled}"
        raise UsageError(text, "a server can only be checked with a trace of all keys")
    sizes = [point.memory_bytes for point in predicted.prediction.curves[0].points]
    memory = ",".join(str(size) for size in _spread(sizes, number))
    policies = {curve.policy for curve in predicted.prediction.curves}
    policies |= {"memcached", "memcached-1.6.33"}
    asked = [f"--policies={','.join(sorted(policies))}", *asked]
    speed = [f"--speed={play_speed(predicted)!r}", f"--memory={memory}"]
    as_played = predicted_trace(["trace", "predict", *words, *asked, *speed, "--", str(source)])
    return PlayedTrace(path=source, words=words, predicted=as_played)


def _spread(sizes: list[int], number: int) -> list[int]:
    """`count` of the sizes, as far from each other and from both ends as possible.

    >>> _spread([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 2)
    [3, 8]
    """
    number = min(number, len(sizes))
    return [sizes[(2 * place + 1) * len(sizes) // (2 * number)] for place in range(number)]


def _show(found: CheckedTrace | ToldTrace, out: Path | None, *, json: bool) -> int:
    from cachemark.report.trace import prediction, told  # noqa: PLC0415

    if isinstance(found, ToldTrace):
        return show_document(told.document(found), found.figures, out, json=json)
    return show_document(prediction.document(found), found, out, json=json)
