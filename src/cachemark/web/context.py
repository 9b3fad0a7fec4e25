"""The values that all requests share."""

import threading

from starlette.exceptions import HTTPException
from starlette.requests import Request

from cachemark.host.placement import beside, cores, usable_cpus
from cachemark.runs.storage.store import run_names
from cachemark.web.live.feed import Feeds
from cachemark.web.player import RunPlayer
from cachemark.web.settings import WebSettings
from cachemark.web.stored import IndexReader, ReportCache

# Only these latest runs are checked for a process: users seldom resume older ones.
_LATEST = 5


class Context:
    """The settings, the finished reports, and the lock of the machine.

    `cpus`: the server's; empty: any.
    """

    def __init__(self, settings: WebSettings) -> None:
        self.settings = settings
        self.reports = ReportCache()
        self.index = IndexReader(settings.root)
        self.feeds = Feeds()
        # Set when the server is about to end, so that streams end too.
        self.closing = threading.Event()
        # Held during a run, a measurement of the doctor, or an import.
        self.busy = threading.Lock()
        measured, self.cpus = beside(cores(usable_cpus()))
        self.player = RunPlayer(settings.root, measured, self.busy.release)

    def take(self, *, within_s: float = 0) -> None:
        """Take the machine, so that nothing disturbs a measurement. Raises HTTPException.

        The caller releases `busy` at the end.
        """
        if not self.busy.acquire(timeout=within_s):
            raise HTTPException(409, "a run, the doctor or an import is running: wait for its end")
        going_on = self._going_on()
        if going_on:
            self.busy.release()
            raise HTTPException(409, f"{going_on} is going on: wait for its end")

    def _going_on(self) -> str:
        """A drive, or a run of this store, such as one from a terminal; empty if none goes on."""
        drive, root = self.settings.drive, self.settings.root
        if drive is not None and self.feeds.of(drive).standing() == "running":
            return "the drive"
        latest = run_names(root)[-_LATEST:]
        running = (name for name in latest if self.feeds.of(root / name).standing() == "running")
        return next(running, "")


def context(request: Request) -> Context:
    """The context of the application that serves a request."""
    value = request.app.state.context
    assert isinstance(value, Context)
    return value
