"""The counts of one operation of a client, as the passes of `cachemark why` find them."""

import re

import msgspec

from cachemark.model.errors import TrialError

_HEAD = re.compile(r"# (sampler|missing): (.+)")
# The worker's functions outside of lanes, which prepare the calls and add up the results.
_LANE = re.compile(r"\(cachemark/\S*lane", re.IGNORECASE)
_STACK = re.compile(r"(\S.*) (\d+)")


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one operation; None: not counted.

    System calls, by strace: see host/system_calls.py. `threads`: the threads that use sockets,
    pipes or poll in at least every second operation.

    From the server's end of the connections: `turns` are the server's answers, one of which may
    reply to several requests; `pieces` its reads of requests; `gap_us` the time between the first
    and the last piece of a turn; `segments_in` and `segments_out` TCP segments with data;
    `acknowledgements` the client's segments without data.

    `instructions`: in its own code, by valgrind; less the loop of its language (`null`).

    `allocation_us`: what the client's runtime takes for one small allocation with its part of the
    collections, in CPU time.

    From the kernel's account of the client, less the loop of its language (the client `null`):
    `user_us` and `system_us` are CPU time; `waiting_us` is the time in which it waits, but not for
    a CPU; `switches` are the waits of all threads; `preemptions`: another thread got the CPU;
    `waiting_threads`: the threads that wait, each by its waits, up to 1; `faults` of pages.

    From the runtime of the client's language, also less the loop: `allocations`,
    `allocated_bytes`; `copies`, the bytes allocated for each byte of a longer value;
    `copied_bytes`, these bytes for values of this length; `collections` in a thousand operations;
    `collection_us` for each operation.
    """

    sends: float | None = None
    recvs: float | None = None
    empty_recvs: float | None = None
    polls: float | None = None
    futexes: float | None = None
    timers: float | None = None
    options: float | None = None
    connects: float | None = None
    wakes: float | None = None
    memory: float | None = None
    files: float | None = None
    others: float | None = None
    threads: float | None = None
    connections: float | None = None
    turns: float | None = None
    pieces: float | None = None
    gap_us: float | None = None
    bytes_in: float | None = None
    bytes_out: float | None = None
    segments_in: float | None = None
    segments_out: float | None = None
    acknowledgements: float | None = None
    retransmitted: float | None = None
    allocation_us: float | None = None
    instructions: float | None = None
    user_us: float | None = None
    system_us: float | None = None
    waiting_us: float | None = None
    switches: float | None = None
    preemptions: float | None = None
    waiting_threads: float | None = None
    faults: float | None = None
    allocations: float | None = None
    allocated_bytes: float | None = None
    copies: float | None = None
    copied_bytes: float | None = None
    collections: float | None = None
    collection_us: float | None = None

    @property
    def cpu_us(self) -> float | None:
        """CPU time."""
        if self.user_us is None or self.system_us is None:
            return None
        return self.user_us + self.system_us

    @property
    def other_bytes(self) -> float | None:
        """Allocated bytes that do not grow with the values, as far as that is known."""
        if self.allocated_bytes is None:
            return None
        return self.allocated_bytes - (self.copied_bytes or 0.0)

    @property
    def full_recvs(self) -> float | None:
        """Reads from sockets that found something."""
        if self.recvs is None or self.empty_recvs is None:
            return None
        return self.recvs - self.empty_recvs


# The figures of Counts from which the language's loop is subtracted.
LOOP_FIGURES = Counts.__struct_fields__[Counts.__struct_fields__.index("instructions") :]
# System calls, by strace.
CALLS = Counts.__struct_fields__[: Counts.__struct_fields__.index("threads")]


class UnitCosts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """CPU time of one call, wait or page fault in the kernel, in µs; None: not measured.

    The names are figures of Counts. `allocations`: the time of malloc and free, outside the kernel.
    """

    sends: float | None = None
    full_recvs: float | None = None
    empty_recvs: float | None = None
    polls: float | None = None
    futexes: float | None = None
    timers: float | None = None
    options: float | None = None
    connects: float | None = None
    wakes: float | None = None
    memory: float | None = None
    files: float | None = None
    others: float | None = None
    switches: float | None = None
    faults: float | None = None
    allocations: float | None = None


# The figures that cost time in the kernel.
COSTING = frozenset(UnitCosts.__struct_fields__) - {"allocations"}


class CountedWork(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of operation of one client: the counts of each repetition.

    `version`: the library's. `failure` is the reason why there are no counts. `past_client`: the
    client, if the counts are of an earlier answer, which `client` names too.
    """

    client: str
    past_client: str = ""
    version: str = ""
    kind: str
    repetitions: list[Counts] = []
    failure: str = ""


class FoldedStacks(msgspec.Struct, frozen=True, kw_only=True):
    """How often a sampler found each stack of functions, in one kind of operation of a client.

    A stack has the frames from the outermost function to the innermost, with `;` between them. A
    frame is `NAME (FILE:LINE)`, as far as the sampler knows them; the line is the function's first.
    `failure` is the reason why there are no stacks.
    """

    client: str
    kind: str
    language: str
    sampler: str = ""
    stacks: dict[str, int] = {}
    failure: str = ""

    @property
    def samples(self) -> int:
        """The number of samples."""
        return sum(self.stacks.values())


def parse_stacks(text: str) -> tuple[str, dict[str, int], str]:
    """A worker's file: the sampler, the stacks, and why there are none. Raises TrialError."""
    head: dict[str, str] = {}
    stacks: dict[str, int] = {}
    for line in filter(None, text.split("\n")):
        if found := _HEAD.fullmatch(line):
            head[found[1]] = found[2]
        elif found := _STACK.fullmatch(line):
            if "(cachemark/" not in found[1] or _LANE.search(found[1]):
                stacks[found[1]] = stacks.get(found[1], 0) + int(found[2])
        else:
            raise TrialError(f"a profile has a line that is no stack: {line[:80]!r}")
    missing = head.get("missing", "" if stacks else "the sampler took no sample")
    return head.get("sampler", ""), {} if missing else stacks, missing
