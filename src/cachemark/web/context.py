"""What all requests share."""

from __future__ import annotations

import threading

from starlette.exceptions import HTTPException
from starlette.requests import Request

from cachemark import host
from cachemark.web.live.feed import Feeds
from cachemark.web.player import Player
from cachemark.web.settings import WebSettings
from cachemark.web.stored import ReportCache


class Context:
    """The settings, the reports that were made, and who is busy with the machine.

    `cpus` are those of the server; empty: any.
    """

    def __init__(self, settings: WebSettings) -> None:
        self.settings = settings
        self.reports = ReportCache()
        self.feeds = Feeds()
        # Held while a run is played, the doctor measures the machine, or an archive is imported.
        self.busy = threading.Lock()
        measured, self.cpus = host.beside(host.cores(host.usable_cpus()))
        self.player = Player(settings.root, measured, self.busy.release)


def context(request: Request) -> Context:
    """What the requests of an application share."""
    value = request.app.state.context
    assert isinstance(value, Context)
    return value


def take(busy: threading.Lock, *, within_s: float = 0) -> None:
    """Take the machine, so that nothing else disturbs a measurement. Raises HTTPException."""
    if not busy.acquire(timeout=within_s):
        raise HTTPException(409, "a run, the doctor or an import is at work: wait for its end")
