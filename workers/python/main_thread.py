"""The main thread as the thread of a lane: signals interrupt calls in this thread only."""

from __future__ import annotations

import queue
from concurrent.futures import Future


class MainThread:
    """An executor that calls functions in the main thread."""

    def __init__(self):
        self._asked = queue.SimpleQueue()
        self._latest = None

    def is_free(self):
        """Whether nothing is left to call. A call of a library may never return."""
        return self._latest is None or self._latest.done()

    def submit(self, function, *arguments):
        """Let the main thread call a function; its future."""
        self._latest = future = Future()
        self._asked.put((future, function, arguments))
        return future

    def shutdown(self, wait=True):
        """Do nothing: there is no other main thread."""

    def serve(self):
        """Call the submitted functions. The main thread calls this, and never returns."""
        while True:
            future, function, arguments = self._asked.get()
            try:
                result = function(*arguments)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)
            del future, function, arguments  # PyPy and sessions: no thread holds them any longer


MAIN_THREAD = MainThread()
