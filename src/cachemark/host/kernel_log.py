"""Reads the kernel's log: all of it, or the lines that arrive during a window."""

import os
from pathlib import Path

# A record of /dev/kmsg is shorter: include/linux/printk.h, PRINTK_MESSAGE_MAX.
_RECORD_BYTES = 8192
# Copies of the log that distributions keep, for users who may not read the log itself.
_COPIES = ("var/log/dmesg", "var/log/kern.log")


def read_kernel_log(root: Path) -> list[str] | None:
    """The lines of the kernel's log; None if it cannot be read."""
    text = _read_all(root / "dev/kmsg")
    if text is None:
        text = next((copy for name in _COPIES if (copy := _read_copy(root / name))), None)
    return None if text is None else text.splitlines()


class KernelLogTail:
    """Collects the lines that arrive from now on, from the log itself: its copies are late."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._fd = _open(root / "dev/kmsg")
        if self._fd is not None:
            try:
                os.lseek(self._fd, 0, os.SEEK_END)
            except OSError:
                self._close()

    def __del__(self) -> None:
        self._close()  # a trial that failed did not call `finish`

    def _close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
        self._fd = None

    def finish(self) -> list[str] | None:
        """Stop, and return the lines; None if the log cannot be read, or at a second call."""
        if self._fd is None:
            return None
        fd, self._fd = self._fd, None
        text = _read_records(fd)
        return None if text is None else text.splitlines()


def _read_all(path: Path) -> str | None:
    fd = _open(path)
    return None if fd is None else _read_records(fd)


def _open(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None


def _read_records(fd: int) -> str | None:
    """The remaining records, and close the file; None if they may not be read.

    Each read returns one record. After the last one it raises BlockingIOError.
    """
    records: list[bytes] = []
    try:
        while True:
            try:
                record = os.read(fd, _RECORD_BYTES)
            except BrokenPipeError:  # the record was overwritten; continue with the next
                continue
            if not record:
                break
            records.append(record)
    except OSError as error:
        if not isinstance(error, BlockingIOError):
            return None
    finally:
        os.close(fd)
    return b"".join(records).decode("utf-8", "replace")


def _read_copy(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
