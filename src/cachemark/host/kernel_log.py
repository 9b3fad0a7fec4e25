"""The kernel's log: all of it, or what came into it in a window."""

from __future__ import annotations

import os
from pathlib import Path

# A record of /dev/kmsg is shorter: include/linux/printk.h, PRINTK_MESSAGE_MAX.
_RECORD_BYTES = 8192
# Where the log itself may not be read, what a distribution copied of it at boot or since.
_COPIES = ("var/log/dmesg", "var/log/kern.log")


def log(root: Path) -> list[str] | None:
    """The kernel's log, a line for each message; None where it cannot be read."""
    text = _all(root / "dev/kmsg")
    if text is None:
        text = next((copy for name in _COPIES if (copy := _text(root / name))), None)
    return None if text is None else text.splitlines()


class LogWatch:
    """What the kernel says from now on. The copies of its log come too late to be of use."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._ring = _opened(root / "dev/kmsg")
        if self._ring is not None:
            try:
                os.lseek(self._ring, 0, os.SEEK_END)
            except OSError:
                self._forget()

    def __del__(self) -> None:
        self._forget()  # a trial that failed did not come to its end

    def _forget(self) -> None:
        if self._ring is not None:
            os.close(self._ring)
        self._ring = None

    def close(self) -> list[str] | None:
        """The lines that have come, the first time; None where it cannot be read."""
        if self._ring is None:
            return None
        ring, self._ring = self._ring, None
        text = _rest(ring)
        return None if text is None else text.splitlines()


def _all(path: Path) -> str | None:
    ring = _opened(path)
    return None if ring is None else _rest(ring)


def _opened(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None


def _rest(ring: int) -> str | None:
    """The records that are left, each of them one read; there is an error where no more wait."""
    records: list[bytes] = []
    try:
        while True:
            try:
                record = os.read(ring, _RECORD_BYTES)
            except BrokenPipeError:  # overwritten before it was read: the next one is there
                continue
            if not record:
                break
            records.append(record)
    except OSError as error:
        # EAGAIN: that was the last. Anything else: it may not be read here.
        if not isinstance(error, BlockingIOError):
            return None
    finally:
        os.close(ring)
    return b"".join(records).decode("utf-8", "replace")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
