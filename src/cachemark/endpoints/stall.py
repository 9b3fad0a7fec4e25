"""Whether a worker's operations fail, one time-out after the other."""

from __future__ import annotations

from cachemark.model.protocol import Progress

# Progress comes about once a second: a few time-outs of any length, and not a pause of the machine.
_MAX_REPORTS = 3
# Reports in which something failed, in all: a server that answers now and then could take hours.
_MAX_FAILING_REPORTS = 20


class StallDetector:
    """Counts reports of a worker in which failures were added."""

    def __init__(self) -> None:
        self._ops = 0
        self._errors = 0
        self._in_a_row = 0
        self._in_all = 0

    def is_stalled(self, report: Progress) -> bool:
        """Whether nothing but failures was reported several times in a row, or some too often."""
        if report.ops > self._ops:
            self._in_a_row = 0
        elif report.errors > self._errors:
            self._in_a_row += 1
        self._in_all += report.errors > self._errors
        self._ops, self._errors = report.ops, report.errors
        return self._in_a_row >= _MAX_REPORTS or self._in_all >= _MAX_FAILING_REPORTS
