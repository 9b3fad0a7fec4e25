"""Sessions that close their connections after a number of calls and open them again.

This happens between two calls, not timed. Without the option, calls are prepared before the window,
and none of this runs.
"""

from __future__ import annotations


class RenewedSession:
    """A session that a new one replaces after `after` calls; `renewed` counts connections."""

    def __init__(self, open_session, after, connections):
        self._open, self._after, self._connections = open_session, after, connections
        self._session, self._made = open_session(), 0
        self._record, self._quiet = None, False
        self.renewed = 0

    def __getattr__(self, name):
        return getattr(self._session, name)

    @property
    def record(self):
        """The record of the lane."""
        return self._record

    @record.setter
    def record(self, record):
        self._record = self._session.record = record

    def begin(self, quiet):
        """A window is about to open."""
        self._quiet = quiet
        self._session.begin(quiet)

    def calls(self, operations, call):
        """Calls of the operations, each made by `call` when its turn comes."""
        for op in operations:
            if self._made >= self._after:
                self._renew()
            self._made += 1
            yield call(self._session, op)

    def _renew(self):
        if self._quiet:  # operations without a reply must arrive before the connection closes
            self._record.barriers += self._session.barrier()
        self._session.finish()
        self._session.close()
        self._session, self._made = self._open(), 0
        self._session.record = self._record
        self._session.begin(self._quiet)
        self.renewed += self._connections


def renewed(sessions):
    """The connections that were reopened since the last call of this."""
    count = 0
    for session in sessions:
        if isinstance(session, RenewedSession):
            count += session.renewed
            session.renewed = 0
    return count
