"""The slices that an arm played in one sitting: the raw data of interleaved measurement.

In a sitting all arms (cells that are compared with each other) are ready at the same time, and
play short slices in turn. docs/methodology-statistics.md explains the design.
"""

import msgspec

# A slice is void if two hosts may have started it further apart than this.
SKEW_LIMIT_NS = 1_000_000


class Slices(msgspec.Struct, frozen=True, kw_only=True):
    """The counted slices of one arm in one sitting, column by column.

    Every list has one entry for each slice, in the order in which they were played.

    - `square`, `row`, `position`: the place in the order of play, each counted from 0 within the
      one before it. The arms of a row are one round.
    - `predecessor`: the arm that played before, by its number in `Rounds.arms`.
    - `began_ns`: from the sitting's first slice.
    - `ops`, `errors`: counted operations; `lead_in_ops` were played and not counted.
    - `elapsed_ns`: the counted time, the mean over the worker's callers.
    - `worker_cpu_ns`, `server_cpu_ns`: CPU time of the arm's own worker and server during the whole
      slice, lead-in included, from the scheduler's account. -1: not available.
    - `idle_cpu_ns`: CPU time of all other arms' workers and servers during the slice.
    - `wall_ns`: from the request to the answer, the duration of all of these CPU times.
    - `steal_ns`: CPU time that the hypervisor took from this machine during the slice.
    - `queued_ns`: the total time in which threads of the arm's own worker and server were runnable
      without a CPU during the slice. -1: not available. Older runs have no entry.
    - `half_ops`, `half_ns`: operations in the first half of the counted part, failed ones too, and
      its length. 0: the worker does not know it. Older runs have no entry.
    - `late_ns`, `skew_ns`, only if several hosts play the arm together: the delay of the last
      host's request after the planned start, and the largest possible distance of two starts.

    With several hosts, the counts and `worker_cpu_ns` are sums, `elapsed_ns` is the mean over all
    callers, and the other entries are the largest value of a host.
    """

    square: list[int] = []
    row: list[int] = []
    position: list[int] = []
    predecessor: list[int] = []
    began_ns: list[int] = []
    wall_ns: list[int] = []
    ops: list[int] = []
    errors: list[int] = []
    lead_in_ops: list[int] = []
    elapsed_ns: list[int] = []
    worker_cpu_ns: list[int] = []
    server_cpu_ns: list[int] = []
    idle_cpu_ns: list[int] = []
    steal_ns: list[int] = []
    half_ops: list[int] = []
    half_ns: list[int] = []
    queued_ns: list[int] = []
    late_ns: list[int] = []
    skew_ns: list[int] = []


class Rounds(msgspec.Struct, frozen=True, kw_only=True):
    """An arm's part of a sitting.

    `arms` are the labels of the arms of the arm's set, `arm` is the number of its own label there.
    `length_us` and `lead_in_us` hold for each slice. `operation_ns`, only with many callers: the
    time of one operation in the warm-up before the arm's first counted slice in the run; it decided
    the length for all sittings of the arm. `start_ns` is the time from the start of the arm's
    server and worker until its keys were stored; `warmup_rounds` slices came before the first
    counted one. `turn_cost_ns` and `turn_cpu_ns`: wall and CPU time of an empty slice of this
    worker, the medians of a few. The CPU time of each slice includes it; figures of CPU time per
    operation do not. `retired`: the arm left the sitting's later squares, after its questions were
    answered. `void_slices` are not in `slices`: several hosts may not have started them together,
    or there was a pause. The workers counted `void_ops` operations in them, failed ones too.
    `paused_slices`: void slices in which client or server was stopped, or the machine paused; all
    together were `paused_ns` longer than planned.
    """

    arms: list[str]
    arm: int
    length_us: int
    lead_in_us: int
    operation_ns: int = 0
    start_ns: int = 0
    warmup_rounds: int = 0
    turn_cost_ns: int = 0
    turn_cpu_ns: int = 0
    retired: bool = False
    void_slices: int = 0
    void_ops: int = 0
    paused_slices: int = 0
    paused_ns: int = 0
    slices: Slices
