"""The slices of one arm while a sitting is played: columns that grow, and their frozen form."""

import msgspec

from cachemark.model.protocol import SliceDone
from cachemark.model.rounds import Slices
from cachemark.runs.sittings.meters import CpuReading
from cachemark.runs.sittings.order import Turn


class SlicePlace(msgspec.Struct, frozen=True):
    """When a slice was played: its turn, the arm before it, its begin, its length as seen here."""

    turn: Turn
    predecessor: int
    began_ns: int
    wall_ns: int


class SliceLog:
    """Every counted slice of an arm, in the order of play."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, ...]] = []
        self.void_slices = self.void_ops = self.void_cpu_ns = 0
        self.paused_slices = self.paused_ns = 0

    def add_void(self, done: SliceDone) -> None:
        """Note a slice that is not counted."""
        self.void_slices += 1
        self.void_ops += done.ops + done.errors

    def add_paused(self, done: SliceDone, cpu: CpuReading, paused_ns: int) -> None:
        """Note a slice in which a process was stopped, or the machine paused: it is void."""
        self.add_void(done)
        self.paused_slices += 1
        self.paused_ns += paused_ns
        self.void_cpu_ns += max(0, cpu.server_ns)

    def add(
        self, place: SlicePlace, done: SliceDone, cpu: CpuReading, start: tuple[int, ...] = ()
    ) -> None:
        """Note a slice; the values are in the order of the columns of `Slices`.

        `start`: lateness and skew, if several hosts play an arm together.
        """
        self._rows.append(
            (
                place.turn.square,
                place.turn.row,
                place.turn.position,
                place.predecessor,
                place.began_ns,
                place.wall_ns,
                done.ops,
                done.errors,
                done.lead_in_ops,
                done.elapsed_ns,
                cpu.worker_ns,
                cpu.server_ns,
                cpu.idle_ns,
                cpu.steal_ns,
                done.half_ops,
                done.half_ns,
                cpu.queued_ns,
                *start,
            )
        )

    def slices(self) -> Slices:
        """The columns."""
        if not self._rows:
            return Slices()
        columns = map(list, zip(*self._rows, strict=True))
        # The last columns are only there for several hosts.
        return Slices(**dict(zip(Slices.__struct_fields__, columns, strict=False)))
