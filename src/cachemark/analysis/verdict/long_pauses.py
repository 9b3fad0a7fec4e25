"""Long pauses of the client or the machine within the window of a closed loop.

A closed loop does nothing in a pause. So the rate is too low by the pause's part of the window, and
the operations that waited then take its length. A pause of the server counts as a result instead.
"""

from itertools import groupby

from cachemark.analysis.verdict.trial_verdict import limit_finding
from cachemark.model.experiment import Load, NoisePolicy
from cachemark.model.outcome import Finding, HostNoise
from cachemark.model.protocol import Done
from cachemark.model.units import plain

# Parts of the window: a pause is named from the first on, the figures do not count from the second.
_NAMED, _LIMIT = 0.01, 0.05
# A shorter one is not long for any loop.
_SHORTEST_NS = 100_000_000


def long_pause_findings(
    noise: HostNoise | None, measure: Done, load: Load, policy: NoisePolicy = "auto"
) -> list[Finding]:
    """Findings about long pauses; INVALID if they can have moved the rate by more than 5 %."""
    window_ns = measure.elapsed_ns
    if noise is None or load.schedule != "closed" or not window_ns:
        return []
    pauses = {
        "the client was stopped": noise.stopped_ns,
        "the machine paused": _machine_ns(noise, measure),
    }
    what, paused_ns = max(pauses.items(), key=lambda pause: pause[1])
    if paused_ns < max(_SHORTEST_NS, _NAMED * window_ns):
        return []
    counts = paused_ns <= _LIMIT * window_ns or policy == "note"
    text = f"{what} for {plain(paused_ns / 1e9)} s of a window of {plain(window_ns / 1e9)} s, "
    text += "which lowers its rate and is in its response times"
    weight, limit_ms = "noise" if counts else "INVALID", _LIMIT * window_ns / 1e6
    return [limit_finding("long-pause", text, paused_ns / 1e6, limit_ms, "ms", weight=weight)]


def _machine_ns(noise: HostNoise, measure: Done) -> int:
    """The longest pause of the machine; 0 if the client went on, as its timeline shows.

    Then only the process that samples pauses stood still, as it does while it waits for a CPU.
    """
    longest_ns = noise.longest_halt_ns or 0
    if measure.timeline is None:
        return longest_ns
    empty = (len(list(run)) for ok, run in groupby(measure.timeline.ok) if not ok)
    gap_ns = max(empty, default=0) * measure.timeline.slice_ns
    # The timeline ends with its last slice: a pause after it makes the window longer.
    late_ns = measure.elapsed_ns - len(measure.timeline.ok) * measure.timeline.slice_ns
    return longest_ns if 2 * max(gap_ns, late_ns) >= longest_ns else 0
