"""The end of a child's stderr. However much a child writes, only the end is kept, in memory."""

from __future__ import annotations

import os
import select
import threading
import time

TAIL_BYTES = 16 * 1024
_CHUNK_BYTES = 64 * 1024
# Of a child that writes without end, about 6 MB a second are read: it waits, and takes no CPU.
_FREE_BYTES = 2**20
_PAUSE_S = 0.01


class StderrTail:
    """The reading end of a pipe, read by a thread until all writers are gone or it is closed."""

    def __init__(self) -> None:
        self._reader, self.writer = os.pipe()
        os.set_blocking(self._reader, False)
        self._stop_reader, self._stop_writer = os.pipe()
        self._tail = b""
        self._seen = 0
        self._closed = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._read_all, daemon=True)

    def begin(self) -> None:
        """Read from now on. The child has the other end, so this process closes its own."""
        os.close(self.writer)
        self._thread.start()

    def cancel(self) -> None:
        """Close everything: the child was not started."""
        for end in (self._reader, self.writer, self._stop_reader, self._stop_writer):
            os.close(end)

    def text(self) -> str:
        """The end of what was written until now."""
        with self._lock:
            while not self._closed and self._read_some():
                if self._seen > _FREE_BYTES:
                    break
            return self._tail.decode("utf-8", "replace")

    def close(self) -> None:
        """Read no more. `text` still has the end."""
        self.text()
        os.close(self._stop_writer)
        self._thread.join()
        with self._lock:
            self._closed = True
            os.close(self._reader)
            os.close(self._stop_reader)

    def _read_all(self) -> None:
        poll = select.poll()
        poll.register(self._reader, select.POLLIN)
        poll.register(self._stop_reader, 0)
        while True:
            ready = dict(poll.poll())
            if self._stop_reader in ready:
                return
            with self._lock:
                if not self._read_some() and ready[self._reader] & select.POLLHUP:
                    return
            if self._seen > _FREE_BYTES:
                time.sleep(_PAUSE_S)

    def _read_some(self) -> bool:
        """Read what is there, at most a chunk; False if there is nothing. Needs the lock."""
        try:
            chunk = os.read(self._reader, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        self._seen += len(chunk)
        self._tail = (self._tail + chunk)[-TAIL_BYTES:]
        return bool(chunk)
