"""Processes strangers' input in a child, with limits on memory, time and file size."""

import contextlib
import os
import resource
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from cachemark.host import prctl
from cachemark.host.files import kib_field, read
from cachemark.model.errors import UsageError

_CHUNK_BYTES = 65536
_LOOK_S = 0.02
_PATIENCE = 10  # on a busy machine, work lasts up to this many times its CPU time
_PROC_STATUS = Path("/proc/self/status")


class SandboxLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of the work: `memory_bytes` more than this process has, `time_s` of CPU time."""

    memory_bytes: int
    time_s: int
    file_bytes: int


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    value: bytes = b""
    problem: str = ""
    remedy: str = ""


def run_limited(work: Callable[[], bytes], limits: SandboxLimits) -> bytes:
    """Do the work in a child process and return its result.

    Raises UsageError: the work's own, or one that says how the work ended.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        _become_child(reader, writer, work, limits)
    os.close(writer)
    try:
        answer_bytes = _read(reader, time.monotonic() + _PATIENCE * limits.time_s)
    finally:
        os.close(reader)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    answer = _answer(answer_bytes, status, limits)
    if answer.problem:
        raise UsageError(answer.problem, answer.remedy)
    return answer.value


def _become_child(
    reader: int, writer: int, work: Callable[[], bytes], limits: SandboxLimits
) -> None:
    """Do the work, write the answer, and exit. Never returns."""
    try:
        os.close(reader)
        _restrict(limits)
        answer_bytes = msgspec.json.encode(_done(work, limits))
        while answer_bytes:
            answer_bytes = answer_bytes[os.write(writer, answer_bytes) :]
    except BaseException:  # the parent's code must never run here
        os._exit(1)
    os._exit(0)


def _restrict(limits: SandboxLimits) -> None:
    with contextlib.suppress(OSError):  # only Linux can; the time limit holds elsewhere
        prctl.die_with_parent(signal.SIGKILL)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    used = kib_field(read(_PROC_STATUS), "VmSize")
    if used is None:
        threading.Thread(target=_watch_memory, args=(limits.memory_bytes,), daemon=True).start()
    else:
        _limit(resource.RLIMIT_AS, used + limits.memory_bytes)
    _limit(resource.RLIMIT_CPU, limits.time_s, 1)  # at its hard limit it would end without SIGXCPU
    _limit(resource.RLIMIT_FSIZE, limits.file_bytes)
    _limit(resource.RLIMIT_CORE, 0)


def _limit(what: int, most: int, spare: int = 0) -> None:
    _, hard = resource.getrlimit(what)
    allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(what, (allowed, allowed + (spare if hard == resource.RLIM_INFINITY else 0)))


def _watch_memory(more_bytes: int) -> None:
    """End this process when it has used `more_bytes` more memory than now.

    This is for systems whose processes cannot limit their address space (macOS).
    """
    most = _largest_bytes() + more_bytes
    while _largest_bytes() <= most:
        time.sleep(_LOOK_S)
    os._exit(1)


def _largest_bytes() -> int:
    """The most memory that this process has had; Linux counts it in KiB, macOS in bytes."""
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest * 1024


def _done(work: Callable[[], bytes], limits: SandboxLimits) -> _Answer:
    try:
        return _Answer(value=work())
    except UsageError as error:
        return _Answer(problem=error.text, remedy=error.remedy)
    except MemoryError:
        return _Answer(problem=f"needs more than {limits.memory_bytes // 2**20} MiB of memory")
    except Exception as error:  # a stranger's input can fail anywhere
        return _Answer(problem=f"does not fit together: {type(error).__name__}: {error}")


def _read(reader: int, deadline: float) -> bytes | None:
    """Everything until the child ends; None if it is not done by the deadline."""
    answer_bytes = bytearray()
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([reader], [], [], left)[0]:
            return None
        chunk = os.read(reader, _CHUNK_BYTES)
        if not chunk:
            return bytes(answer_bytes)
        answer_bytes += chunk


def _answer(answer_bytes: bytes | None, status: int, limits: SandboxLimits) -> _Answer:
    if answer_bytes is None or os.waitstatus_to_exitcode(status) == -signal.SIGXCPU:
        return _Answer(problem=f"takes longer than {limits.time_s} s of CPU time")
    if not answer_bytes:
        most = f"{limits.memory_bytes // 2**20} MiB of memory"
        return _Answer(problem=f"cannot be read within {most}")
    return msgspec.json.decode(answer_bytes, type=_Answer)
