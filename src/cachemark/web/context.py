"""What all requests share."""

from __future__ import annotations

import threading

from starlette.requests import Request

from cachemark.web.live.feed import Feeds
from cachemark.web.settings import WebSettings
from cachemark.web.stored import ReportCache


class Context:
    """The settings, the reports that were made, and who is busy with the machine."""

    def __init__(self, settings: WebSettings) -> None:
        self.settings = settings
        self.reports = ReportCache()
        self.feeds = Feeds()
        # Held while the doctor measures the machine, and while an archive is imported.
        self.busy = threading.Lock()


def context(request: Request) -> Context:
    """What the requests of an application share."""
    value = request.app.state.context
    assert isinstance(value, Context)
    return value
