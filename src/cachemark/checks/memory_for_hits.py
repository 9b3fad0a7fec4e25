"""How much memory a server needs for a hit ratio, if gets that miss store their keys.

A server of some memory gets all keys, then fetches of keys drawn by popularity: a get, and on a
miss a set. The fetches come in windows, each with new draws of the same keys and popularity. When
the server has settled, two more windows are counted. Halving the range of the memory finds the
least that reaches the ratio. Nothing is timed, so the native client plays without a verdict.
"""

import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean

import msgspec

from cachemark.checks.item_memory import ItemShapes, drawn_shapes
from cachemark.checks.memory_need import FillProgress, halve, sampled_need
from cachemark.endpoints.clients import NETWORK
from cachemark.endpoints.fleet import Fleet, RunMonitor
from cachemark.endpoints.servers import RunningServer, ServerSpec, running_unencrypted, with_memory
from cachemark.host import process
from cachemark.host.engine_output import write_tape
from cachemark.host.temporary import temporary_folder
from cachemark.model.errors import TrialError
from cachemark.model.protocol import Operation, Prepare, RunRequest
from cachemark.model.server_memory import HitRatio, MemoryForHits

# A window has as many fetches as there are keys, within these limits.
_MIN_WINDOW, _MAX_WINDOW = 100_000, 4_000_000
# The server has settled when it has evicted this part of what it holds, or when the last windows
# found as much as those before them. Then, or after the most, windows are counted.
_REPLACED_PART = 0.5
_COMPARED_WINDOWS, _ERRORS = 3, 2.0
_MAX_WINDOWS, _COUNTED_WINDOWS = 16, 2
# More memory, if that for all items does not reach the ratio: some servers lose items unevenly.
_MORE, _ATTEMPTS = 1.25, 4
_CONNECTIONS, _DEPTH, _TIMEOUT_MS, _READY_S = 4, 16, 10_000, 60.0


class Fetches(msgspec.Struct, frozen=True, kw_only=True):
    """The items and how they are fetched; `distribution` is in the engine's grammar."""

    items: int
    size: str
    key_length: str
    distribution: str

    @property
    def window(self) -> int:
        """Fetches of a window."""
        return min(max(self.items, _MIN_WINDOW), _MAX_WINDOW)

    @property
    def words(self) -> list[str]:
        """The engine's words for the tape of a window."""
        words = ["--keys", str(self.items), "--key-length", self.key_length, "--size", self.size]
        words += ["--distribution", self.distribution]
        return [*words, "--mix", "fetch=1", "--ops", str(self.window)]

    def shapes(self) -> ItemShapes:
        """The items. Raises UsageError for a text that is none."""
        return drawn_shapes(self.items, self.size, self.key_length)


def memory_for_hits(
    spec: ServerSpec, fetches: Fetches, target: float, progress: FillProgress
) -> MemoryForHits:
    """Find the memory for a hit ratio. A failure is not raised, but stored in `reason`.

    Raises UsageError for fetches that the engine does not understand.
    """
    shapes = fetches.shapes()
    need = sampled_need(spec, shapes, fetches.items, progress)
    answer = MemoryForHits(
        server=spec.text,
        items=fetches.items,
        data_bytes=need.data_bytes,
        target=target,
        all_items_mib=need.memory_mib,
        reason=need.reason,
    )
    if need.memory_mib is None:
        return answer
    try:
        return _searched(spec, fetches, answer, need.memory_mib, progress)
    except TrialError as error:
        return msgspec.structs.replace(answer, reason=error.text)


def _searched(
    spec: ServerSpec, fetches: Fetches, answer: MemoryForHits, high_mib: int, progress: FillProgress
) -> MemoryForHits:
    """More memory until the ratio is reached, then halves. Raises TrialError."""
    for _ in range(_ATTEMPTS):
        seen = _hit_ratio(spec, fetches, high_mib, progress)
        if seen.ratio >= answer.target:
            break
        answer = msgspec.structs.replace(answer, missed=seen)
        high_mib = math.ceil(high_mib * _MORE)
    else:
        best = answer.missed.ratio if answer.missed else 0.0
        reason = f"with memory for more than all items it is still {100 * best:.2f} %"
        return msgspec.structs.replace(answer, reason=reason)
    seen_at = {of.memory_mib: of for of in (answer.missed, seen) if of}

    def reaches(memory_mib: int) -> bool:
        seen_at[memory_mib] = seen = _hit_ratio(spec, fetches, memory_mib, progress)
        return seen.ratio >= answer.target

    low_mib = answer.missed.memory_mib if answer.missed else 0
    low_mib, high_mib = halve(low_mib, high_mib, reaches)
    below = [mib for mib in seen_at if mib <= low_mib]
    missed = seen_at[max(below)] if below else None
    return msgspec.structs.replace(answer, reached=seen_at[high_mib], missed=missed)


def _hit_ratio(
    spec: ServerSpec, fetches: Fetches, memory_mib: int, progress: FillProgress
) -> HitRatio:
    """The hits of a new server of `memory_mib` when it has settled. Raises TrialError."""
    limited = with_memory(spec, f"{memory_mib}m")
    assert limited is not None
    with _player(limited, fetches) as player:
        windows: list[int] = []
        settled = False
        while not settled and len(windows) < _MAX_WINDOWS:
            progress(f"{limited.text}: window {len(windows) + 1}, until it has settled")
            windows.append(player.play())
            settled = player.has_replaced() or is_constant(windows, fetches.window)
        player.held.clear()
        found = sum(player.play() for _ in range(_COUNTED_WINDOWS))
        asked = _COUNTED_WINDOWS * fetches.window
        return HitRatio(
            memory_mib=memory_mib,
            ratio=found / asked,
            fetches=asked,
            held_items=round(fmean(player.held)) if player.held else None,
            settled=settled,
        )


def is_constant(hits: Sequence[int], window: int) -> bool:
    """Whether the last windows found as much as those before them, within two standard errors."""
    if len(hits) < 2 * _COMPARED_WINDOWS:
        return False
    fetches = _COMPARED_WINDOWS * window
    last = sum(hits[-_COMPARED_WINDOWS:]) / fetches
    before = sum(hits[-2 * _COMPARED_WINDOWS : -_COMPARED_WINDOWS]) / fetches
    mean = (last + before) / 2
    return abs(last - before) <= _ERRORS * math.sqrt(2 * mean * (1 - mean) / fetches)


class _Player:
    """Windows of fetches on one server, each from a tape with draws of its own."""

    def __init__(self, server: RunningServer, fleet: Fleet, fetches: Fetches, folder: Path) -> None:
        self.server = server
        # The number of items, read many times: a server that evicts whole groups has more before
        # a group than after it.
        self.held: list[int] = []
        self._fleet, self._fetches, self._tape = fleet, fetches, folder / "tape"
        self._watch = RunMonitor(progress=self._note_held, silence_timeout_s=_READY_S)
        self._windows = 0
        self._evicted_before = 0
        self._prepare(prefill=1)
        fleet.run(RunRequest(phase="prefill"), self._watch)
        self._after_prefill = self._evictions()

    def _prepare(self, prefill: int) -> None:
        number = ["--draws", str(self._windows), "--prefill", str(prefill)]
        write_tape(self._tape, *self._fetches.words, *number)
        request = Prepare(
            servers=self.server.addresses,
            connections=_CONNECTIONS,
            depth=_DEPTH,
            tape=str(self._tape),
            timeout_ms=_TIMEOUT_MS,
        )
        self._fleet.prepare(request, _READY_S)

    def play(self) -> int:
        """The hits of one window. Raises TrialError, also if a fetch failed."""
        self._evicted_before = self._evictions()
        self._windows += 1
        self._prepare(prefill=0)
        request = RunRequest(phase="measure", ops=self._fetches.window)
        done = self._fleet.run(request, self._watch)
        self._note_held(self._fetches.window)
        return _hits(done.operations["fetch"])

    def has_replaced(self) -> bool:
        """Whether half of the held items were replaced since the prefill, or none is any more."""
        evicted = self._evictions()
        held = self.server.stats().number("curr_items") or 0
        return (
            evicted == self._evicted_before
            or evicted - self._after_prefill >= _REPLACED_PART * held
        )

    def _note_held(self, _ops: int) -> None:
        count = self.server.stats().number("curr_items")
        self.held += [] if count is None else [count]

    def _evictions(self) -> int:
        count = self.server.stats().number("evictions")
        if count is None:
            raise TrialError("it does not report its evictions, so it never shows that it is full")
        return count


def _hits(fetches: Operation) -> int:
    failures = {**fetches.errors, "a wrong value": fetches.wrong_values}
    if failed := sum(failures.values()):
        first = next(kind for kind, count in failures.items() if count)
        raise TrialError(f"{failed:,} fetches failed, the first with {first!r}")
    return fetches.hits


@contextmanager
def _player(spec: ServerSpec, fetches: Fetches) -> Generator[_Player]:
    command = [process.binary_path(), "worker", NETWORK]
    with (
        temporary_folder() as folder,
        running_unencrypted(spec) as server,
        Fleet(command, 1, cpus="", name="native") as fleet,
    ):
        fleet.hello(_READY_S)
        yield _Player(server, fleet, fetches, folder)
        fleet.bye()
