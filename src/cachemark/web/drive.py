"""A drive that is piped into `cachemark web --drive`."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from cachemark.host.temporary import temporary_folder
from cachemark.runs.events.drive_lines import follow
from cachemark.runs.events.log import EventLog


@contextmanager
def events_of_drive(descriptor: int) -> Generator[Path]:
    """A folder with the events of the drive whose lines a file descriptor brings."""
    # A reader of its own: at its end, Python waits for the lock of sys.stdin's.
    stream = open(descriptor, "rb", closefd=False)  # noqa: SIM115
    with temporary_folder() as folder:
        threading.Thread(
            target=follow, args=(stream, EventLog(folder)), name="drive", daemon=True
        ).start()
        yield folder
