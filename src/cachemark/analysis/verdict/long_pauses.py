"""Long pauses of the client, the server or the machine within a window.

A closed loop does nothing in a pause. So the rate is too low by the pause's part of the window, and
the operations that waited then take its length. A pause that the server makes itself is a result,
and only named.
"""

from collections.abc import Iterator
from itertools import groupby

from cachemark.analysis.verdict.trial_verdict import limit_finding
from cachemark.analysis.verdict.withholding import Delay, delay_of_share
from cachemark.model.experiment import Load, NoisePolicy
from cachemark.model.experiment_limits import outstanding_ops
from cachemark.model.outcome import Finding, HostNoise
from cachemark.model.protocol import Done
from cachemark.model.protocol_results import attempts_of
from cachemark.model.units import plain

LONG_PAUSE = "long-pause"
# Parts of the window: a pause is named from the first on, the figures do not count from the second.
_NAMED, _LIMIT = 0.01, 0.05
# A shorter one is not long for any loop.
_SHORTEST_NS = 100_000_000
# In a timeline, a pause lasts longer than this number of operations.
_OPERATIONS = 10


def long_pause_findings(
    noise: HostNoise | None, measure: Done, load: Load, policy: NoisePolicy = "auto"
) -> list[Finding]:
    """Findings about long pauses; INVALID if they can have moved a closed loop's rate by 5 %."""
    window_ns = measure.elapsed_ns
    if noise is None or not window_ns:
        return []
    closed = load.schedule == "closed"
    pauses = {"the server was stopped": noise.server_stopped_ns}
    if closed:
        pauses["the client was stopped"] = noise.stopped_ns
        pauses["the machine paused"] = _machine_ns(noise, measure)
    what, paused_ns = max(pauses.items(), key=lambda pause: pause[1])
    if paused_ns < max(_SHORTEST_NS, _NAMED * window_ns):
        return [*_silences(measure, load)] if closed else []
    counts = not closed or paused_ns <= _LIMIT * window_ns or policy == "note"
    text = f"{what} for {_of_window(paused_ns, window_ns)}, which "
    text += f"{'lowers its rate and ' if closed else ''}is in its response times"
    weight, limit_ms = "noise" if counts else "INVALID", _LIMIT * window_ns / 1e6
    return [limit_finding(LONG_PAUSE, text, paused_ns / 1e6, limit_ms, "ms", weight=weight)]


def stop_delays(noise: HostNoise, measure: Done) -> Iterator[Delay]:
    """What a stop of the server can have delayed in an open loop."""
    if noise.server_stopped_ns >= _SHORTEST_NS:
        stopped_ns = noise.server_stopped_ns
        text = f"the server was stopped for {_of_window(stopped_ns, noise.window_ns)}"
        yield delay_of_share(LONG_PAUSE, text, measure, stopped_ns / noise.window_ns, stopped_ns)


def _of_window(paused_ns: float, window_ns: float) -> str:
    return f"{plain(paused_ns / 1e9)} s of a window of {plain(window_ns / 1e9)} s"


def _machine_ns(noise: HostNoise, measure: Done) -> int:
    """The longest pause of the machine; 0 if the client went on, as its timeline shows.

    Then only the process that samples pauses stood still, as it does while it waits for a CPU.
    """
    longest_ns = noise.longest_halt_ns or 0
    if measure.timeline is None:
        return longest_ns
    # The timeline ends with its last slice: a pause after it makes the window longer.
    late_ns = measure.elapsed_ns - len(measure.timeline.ok) * measure.timeline.slice_ns
    return longest_ns if 2 * max(_gap_ns(measure), late_ns) >= longest_ns else 0


def _gap_ns(measure: Done) -> int:
    """The longest part of the timeline in which no operation succeeded."""
    if measure.timeline is None:
        return 0
    empty = (len(list(run)) for ok, run in groupby(measure.timeline.ok) if not ok)
    return max(empty, default=0) * measure.timeline.slice_ns


def _silences(measure: Done, load: Load) -> Iterator[Finding]:
    """A note about a pause without a known cause, which is long for these operations."""
    gap_ns, window_ns = _gap_ns(measure), measure.elapsed_ns
    each_ns = window_ns * outstanding_ops(load) / max(1, attempts_of(measure.operations))
    limit_ns = max(_SHORTEST_NS, _LIMIT * window_ns, _OPERATIONS * each_ns)
    if gap_ns > limit_ns:
        text = f"no operation succeeded for {_of_window(gap_ns, window_ns)}, for no known reason"
        figures = gap_ns / 1e6, limit_ns / 1e6
        yield limit_finding("silence", text, *figures, "ms", weight="note")
