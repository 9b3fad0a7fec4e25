"""The schedule of an open loop: when its operations were due, read from the tape (docs/tape.md)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cachemark.model.tape_header import read_header


class Schedule:
    """The intended start times on a tape. They repeat with the period of the tape."""

    def __init__(self, path: Path) -> None:
        header = read_header(path)
        self._ops, self._period_ns = header.op_count, header.period_ns
        self._times = np.memmap(
            path, dtype="<u8", mode="r", offset=header.times_at, shape=(header.op_count,)
        )

    def due(self, at_ns: int) -> int:
        """How many operations were due by `at_ns` after the window's start."""
        passes, within = divmod(max(0, at_ns), self._period_ns)
        return passes * self._ops + int(np.searchsorted(self._times, within, side="right"))
