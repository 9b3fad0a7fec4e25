"""Whether a worker's operations all fail, one time-out after the other."""

from __future__ import annotations

from cachemark.model.protocol import Progress

# Progress comes about once a second: a few time-outs of any length, and not a pause of the machine.
_MAX_REPORTS = 3


class StallDetector:
    """Counts reports of a worker in which only failures were added."""

    def __init__(self) -> None:
        self._ops = 0
        self._errors = 0
        self._reports = 0

    def is_stalled(self, report: Progress) -> bool:
        """Whether nothing but failures was reported several times in a row."""
        if report.ops > self._ops:
            self._reports = 0
        elif report.errors > self._errors:
            self._reports += 1
        self._ops, self._errors = report.ops, report.errors
        return self._reports >= _MAX_REPORTS
