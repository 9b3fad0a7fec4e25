"""Settings of this process that only the system call prctl has."""

import ctypes
import errno
import os

_SET_PDEATHSIG = 1
_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(signal: int) -> None:
    """Get `signal` when the parent ends. Raises OSError."""
    _set(_SET_PDEATHSIG, signal)


def adopt_orphans() -> None:
    """Become the parent of all descendants whose own parent ends. Raises OSError."""
    _set(_SET_CHILD_SUBREAPER, 1)


def _set(option: int, value: int) -> None:
    if not hasattr(_libc, "prctl"):
        raise OSError(errno.ENOSYS, "only Linux has prctl")
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
