"""The main thread as the thread of a lane: signals interrupt calls in this thread only."""

from __future__ import annotations

import queue
from concurrent.futures import Future


class MainThread:
    """Calls functions in the main thread, as an executor with one thread does in its own."""

    def __init__(self):
        self._asked = queue.SimpleQueue()
        self._latest = None

    def is_free(self):
        """Whether nothing is left to call. A call of a library may not come back."""
        return self._latest is None or self._latest.done()

    def submit(self, function, *arguments):
        """Have a function called; its future."""
        self._latest = future = Future()
        self._asked.put((future, function, arguments))
        return future

    def shutdown(self, wait=True):
        """It goes on: there is no other main thread."""

    def serve(self):
        """Call what is submitted. To be called by the main thread, which does not come back."""
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
