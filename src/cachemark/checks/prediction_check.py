"""A prediction beside real servers: the trace is played against them, as it was predicted.

What the trace needs is the time in which it was recorded, as items expire and memcached's pages
move by the clock. A longer trace is played faster, with expiry times as much shorter; then the
prediction beside it is one for the trace as it is played.
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from cachemark.endpoints.servers import ServerSpec, parse_spec, running_unencrypted, with_memory
from cachemark.host.engine_output import engine_output
from cachemark.model.errors import UsageError
from cachemark.model.miss_ratio import CachePolicy, PredictedTrace, PredictionCheck
from cachemark.model.units import MIB, version_numbers

_LONGEST_S = 60.0
# The operations that one connection surely plays in a second.
_PLAYED_PER_S = 10_000
_REMEDY = "docs/size-a-fleet.md describes --check"
# Items of a page that moves stay since then.
_MOVING_RELEASE = [1, 6, 34]


class _Played(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of the engine's `trace play`."""

    reads: int
    misses: int
    refused: int
    late_s: float


def servers_of(policies: Sequence[str]) -> list[str]:
    """The kinds of the servers that have one of these policies, each once."""
    return list(dict.fromkeys(each.split("-")[0] for each in policies if each != "lru"))


def checked_servers(texts: Sequence[str], predicted: Sequence[str]) -> list[ServerSpec]:
    """The servers to play against, when these policies are predicted.

    Raises UsageError for a server that nothing is predicted for.
    """
    specs = [parse_spec(text) for text in texts]
    known = servers_of(predicted)
    for spec in specs:
        if spec.kind not in known:
            remedy = " or ".join(known) or "add memcached to --policies"
            raise UsageError(f"server {spec.text!r}: nothing is predicted for it", remedy)
        if "memory" in spec.options:
            raise UsageError(
                f"server {spec.text!r}: its memory is that of --memory", "leave it out"
            )
    return specs


def play_speed(predicted: PredictedTrace) -> float:
    """How many times as fast as recorded the trace is played."""
    if not predicted.duration_s:
        return 1.0
    requests_s = predicted.prediction.requests / _PLAYED_PER_S
    played_s = max(min(predicted.duration_s, _LONGEST_S), requests_s)
    return max(1.0, predicted.duration_s / played_s)


class PlayedTrace(msgspec.Struct, frozen=True, kw_only=True):
    """A trace to play. `words` say how it is read; `predicted` is for the speed of playing."""

    path: Path
    words: list[str]
    predicted: PredictedTrace


def check(
    spec: ServerSpec, trace: PlayedTrace, progress: Callable[[str], None]
) -> list[PredictionCheck]:
    """Play the trace against a server at each size of its curve. Raises UsageError, TrialError."""
    points = trace.predicted.prediction.curves[0].points
    return [_check(spec, trace, place, progress) for place in range(len(points))]


def _policy(kind: str, version: str) -> CachePolicy:
    if kind == "embedded":
        return "embedded"
    return "memcached" if version_numbers(version) >= _MOVING_RELEASE else "memcached-1.6.33"


def _check(
    spec: ServerSpec, trace: PlayedTrace, place: int, progress: Callable[[str], None]
) -> PredictionCheck:
    points = {each.policy: each.points[place] for each in trace.predicted.prediction.curves}
    point = points["embedded" if spec.kind == "embedded" else "memcached"]
    mib = point.memory_bytes // MIB
    if point.misses is None:
        text = f"--check: with {mib} MiB, a part of the keys says nothing about memcached"
        raise UsageError(text, "add --sample all")
    limited = with_memory(spec, f"{mib}m")
    assert limited is not None
    progress(f"playing the trace against {limited.text}")
    as_played = trace.predicted
    uncounted = math.floor(as_played.prediction.requests * as_played.warm_up)
    options = [*trace.words, f"--speed={as_played.speed!r}", f"--uncounted={uncounted}"]
    with running_unencrypted(limited) as server:
        [address] = server.addresses
        printed = engine_output(
            ["trace", "play", *options, "--", str(trace.path), address], _REMEDY
        )
        policy = _policy(spec.kind, server.facts.version)
    played = msgspec.json.decode(printed, type=_Played)
    return PredictionCheck(
        server=spec.text,
        version=server.facts.version,
        policy=policy,
        memory_bytes=point.memory_bytes,
        speed=as_played.speed,
        predicted=points[policy].misses or point.misses,
        measured=played.misses / played.reads if played.reads else 0.0,
        reads=played.reads,
        refused=played.refused,
        late_s=played.late_s,
    )
