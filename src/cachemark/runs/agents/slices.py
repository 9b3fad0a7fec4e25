"""Slices on a host of clients that plays them together with others, each at its planned start.

A host that is late for a slice does not begin it: the slice is void wherever it was played, and the
next one is not delayed. No message comes from anywhere while slices are played.
"""

import gc
import time
from collections.abc import Callable, Mapping, Sequence

from cachemark.endpoints.fleet import Fleet
from cachemark.endpoints.servers import RunningServer
from cachemark.model.errors import TrialError
from cachemark.model.protocol import Slice
from cachemark.model.rounds import SKEW_LIMIT_NS
from cachemark.runs.agents import messages
from cachemark.runs.sittings.meters import SliceMeters, TurnCost

# The workers get the request this long before the planned start.
_AHEAD_NS = 2_000_000


class SlicePlayer:
    """Plays the slices of the arms whose workers are on this host.

    `check_going_on` raises TrialError when the sitting is broken off. `fleets` and `servers` run on
    this host; the keys are the numbers of their arms.
    """

    def __init__(
        self,
        fleets: Mapping[int, Fleet],
        servers: Mapping[int, RunningServer],
        check_going_on: Callable[[], None],
    ) -> None:
        self._fleets, self._servers = fleets, servers
        self._check_going_on = check_going_on
        self._meters = SliceMeters()

    def close(self) -> None:
        """Close the sources of its CPU times."""
        self._meters.close()

    def begin(self, arm: int, ready_s: float) -> TurnCost:
        """Make an arm's workers ready, and play some slices that have no length.

        Raises TrialError.
        """
        fleet = self._fleets[arm]
        fleet.begin_slices(ready_s)
        self._meters.add(arm, fleet, self._servers.get(arm))
        return self._meters.turn_cost(arm, fleet)

    def play(self, slices: Sequence[messages.PlannedSlice]) -> messages.HostSlices:
        """Play slices in their order. A failure of an arm's workers leaves out the arm's others."""
        played: list[messages.PlayedSlice] = []
        failures: dict[int, messages.ArmFailure] = {}
        # Waits end by this clock, which no program can set.
        wall_ahead_ns = _wall_ahead_ns()
        gc.collect()
        gc.disable()  # a collection of garbage takes milliseconds
        try:
            for planned in slices:
                self._check_going_on()
                if planned.arm in failures:
                    played.append(messages.PlayedSlice(late_ns=0))
                    continue
                try:
                    played.append(self._play_one(planned, wall_ahead_ns))
                except TrialError as error:
                    played.append(messages.PlayedSlice(late_ns=0))
                    failures[planned.arm] = messages.ArmFailure(
                        arm=planned.arm, text=error.text, remedy=error.remedy
                    )
        finally:
            gc.enable()
        return messages.HostSlices(played=played, failures=list(failures.values()))

    def _play_one(self, planned: messages.PlannedSlice, wall_ahead_ns: int) -> messages.PlayedSlice:
        start_ns = planned.start_unix_ns - wall_ahead_ns
        _sleep_until(start_ns - _AHEAD_NS)
        late_ns = max(0, time.monotonic_ns() - start_ns)
        stepped_ns = _wall_ahead_ns() - wall_ahead_ns
        if max(late_ns, abs(stepped_ns)) > SKEW_LIMIT_NS:
            return messages.PlayedSlice(late_ns=late_ns, stepped_ns=stepped_ns)
        fleet, ended = self._fleets[planned.arm], self._meters.begin(planned.arm)
        done = fleet.slice(
            Slice(
                length_us=planned.length_us,
                lead_in_us=planned.lead_in_us,
                start_unix_ns=planned.start_unix_ns,
            )
        )
        wall_ns = time.monotonic_ns() - start_ns
        return messages.PlayedSlice(
            late_ns=fleet.slice_late_ns,
            stepped_ns=stepped_ns,
            done=done,
            wall_ns=wall_ns,
            paused_ns=fleet.slice_paused_ns,
            cpu=ended(),
        )


def _wall_ahead_ns() -> int:
    """The wall clock less the monotonic clock, in ns."""
    return time.time_ns() - time.monotonic_ns()


def _sleep_until(at_ns: int) -> None:
    left_ns = at_ns - time.monotonic_ns()
    if left_ns > 0:
        time.sleep(left_ns / 1e9)
