"""Long pauses in the window of a closed loop: which are named, and which withhold its figures."""

import msgspec
import pytest

from cachemark.analysis.giving_up import may_be_replayed
from cachemark.analysis.verdict.long_pauses import long_pause_findings
from cachemark.analysis.verdict.noise import noise_delays
from cachemark.model.experiment import Load
from cachemark.model.outcome import HostNoise
from cachemark.model.protocol import Done
from cachemark.model.protocol_results import Timeline
from tests.builders.outcomes import measured

CLOSED = Load(name="one")
SLICE_NS = 4_000_000
S = 1_000_000_000


def window(gap_ns: int, elapsed_ns: int = 9 * S) -> Done:
    """A window of 4 s in which no operation ended for some time."""
    base = measured("a", 0, 100).measure
    assert base is not None
    empty = min(1000, gap_ns // SLICE_NS)
    ok = [1] * (1000 - empty) + [0] * empty
    timeline = Timeline(slice_ns=SLICE_NS, ok=ok, response_ns=ok)
    return msgspec.structs.replace(base, elapsed_ns=elapsed_ns, timeline=timeline)


@pytest.mark.parametrize(
    ("noise", "measure", "weight", "words"),
    [
        ({"longest_halt_ns": 4.9 * S}, window(3 * S), "INVALID", "the machine paused for 4.9 s"),
        ({"stopped_ns": 4.9 * S}, window(0), "INVALID", "the client was stopped for 4.9 s"),
        ({"server_stopped_ns": 2.5 * S}, window(0), "INVALID", "the server was stopped for 2.5 s"),
        ({"longest_halt_ns": 0.2 * S}, window(S // 5, 4 * S), "noise", "of a window of 4 s"),
    ],
)
def test_a_long_pause_is_named(
    noise: dict[str, float], measure: Done, weight: str, words: str
) -> None:
    seen = HostNoise(**{name: round(ns) for name, ns in noise.items()})  # pyright: ignore[reportArgumentType]
    (found,) = long_pause_findings(seen, measure, CLOSED)
    assert (found.rule, found.weight) == ("long-pause", weight)
    assert words in found.text
    (noted,) = long_pause_findings(seen, measure, CLOSED, "note")
    assert noted.weight == "noise"


@pytest.mark.parametrize(
    ("noise", "measure", "load"),
    [
        (None, window(3 * S), CLOSED),
        (HostNoise(longest_halt_ns=50_000_000), window(3 * S, S), CLOSED),
        # The machine was only busy.
        (HostNoise(longest_pause_ns=3 * S, longest_halt_ns=0), window(3 * S, 4 * S), CLOSED),
        # The client went on, so only the thread that samples pauses got no CPU.
        (HostNoise(longest_halt_ns=S), window(0, 4 * S), CLOSED),
        # An open loop withholds the percentiles that lateness can have moved.
        (HostNoise(stopped_ns=S), window(S), msgspec.structs.replace(CLOSED, schedule="uniform")),
    ],
)
def test_other_pauses_are_not(noise: HostNoise | None, measure: Done, load: Load) -> None:
    found = long_pause_findings(noise, measure, load)
    assert "long-pause" not in {each.rule for each in found}


def test_a_silence_without_a_known_cause_is_noted() -> None:
    (found,) = long_pause_findings(HostNoise(), window(S, 4 * S), CLOSED)
    assert (found.rule, found.weight) == ("silence", "note")
    assert "no operation succeeded for 1 s of a window of 4 s" in found.text
    # Operations of a second each leave such gaps.
    slow = msgspec.structs.replace(CLOSED, threads=100)
    assert long_pause_findings(HostNoise(), window(S, 4 * S), slow) == []


def test_an_open_loop_withholds_what_a_stopped_server_moved() -> None:
    noise = HostNoise(server_stopped_ns=S // 5, window_ns=9 * S)
    load = msgspec.structs.replace(CLOSED, schedule="uniform")
    (found,) = long_pause_findings(noise, window(0), load)
    assert (found.weight, "rate" in found.text) == ("noise", False)
    (delay,) = noise_delays(noise, window(0), load)
    assert (delay.rule, delay.over_ns[-1]) == ("long-pause", S // 5)
    assert delay.counts[0] > 0


def test_a_trial_with_a_long_pause_may_be_replayed() -> None:
    found = long_pause_findings(HostNoise(stopped_ns=S), window(S), CLOSED)
    trial = msgspec.structs.replace(measured("a", 0, 100), verdict="INVALID", findings=found)
    assert may_be_replayed(trial)
