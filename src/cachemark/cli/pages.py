"""`cachemark run --web`: pages that show the run while it goes on, in a process of their own."""

import os
import re
import select
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from urllib.parse import quote

from cachemark import host
from cachemark.host import process
from cachemark.report.console import plain_console, print_words
from cachemark.runs.events.web_time import WEB_PID
from cachemark.runs.storage.store import Run
from cachemark.web.verbs import error_of, verb_command

_START_MS = 60_000
# Viewers are still told how the run ended.
_GRACE_S = 5.0
_ADDRESS = re.compile(rb" is shown at (\S+)/; it ends")


@contextmanager
def pages_of(run: Run) -> Generator[None]:
    """Serve the store of a run, and leave a core to the server. Raises UsageError."""
    usable = host.usable_cpus()
    measured, cpus = host.beside(host.cores(usable))
    command = verb_command("web", f"--runs={run.folder.parent}", "--port=0", "--read-only")
    child = process.start(command, cpus=cpus, stdout=subprocess.PIPE)
    try:
        address = f"{_address(child)}/runs/{quote(run.folder.name)}/live"
        print_words(plain_console(stderr=True), f"shown at {address}")
        os.environ[WEB_PID] = str(child.pid)
        if measured:
            host.run_on(process.parse_cpus(measured))
        yield
    finally:
        os.environ.pop(WEB_PID, None)
        host.run_on(usable)
        child.stop(_GRACE_S)


def _address(child: process.Child) -> str:
    """Where the server listens. Raises UsageError if it does not start."""
    stdout = child.popen.stdout
    assert stdout is not None
    poll = select.poll()
    poll.register(stdout, select.POLLIN)
    match = _ADDRESS.search(stdout.readline()) if poll.poll(_START_MS) else None
    if match is None:
        child.stop()
        raise error_of(child.log_tail(), child.popen.returncode)
    return match[1].decode()
