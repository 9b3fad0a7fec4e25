"""How long processes were ready to run and had no CPU: the scheduler's own account."""

from __future__ import annotations

from pathlib import Path

_NS_IN_TICK = 10_000_000


def waited_ns(pids: list[int], root: Path = Path("/")) -> int:
    """Time on run queues so far, of all threads of processes and of their children.

    With what the hypervisor took of all CPUs, which is on no account of theirs. Threads that have
    ended are not in it. 0 where the kernel does not tell.
    """
    return sum(_process_ns(pid, root) for pid in pids) + _steal_ns(root)


def _process_ns(pid: int, root: Path) -> int:
    waited = 0
    for task in (root / "proc" / str(pid) / "task").glob("*"):
        # "on the CPU, on a run queue, times": ns, ns, count.
        words = _read(task / "schedstat").split()
        waited += int(words[1]) if len(words) == 3 else 0
        waited += sum(_process_ns(int(child), root) for child in _read(task / "children").split())
    return waited


def _steal_ns(root: Path) -> int:
    words = _read(root / "proc/stat").partition("\n")[0].split()
    return int(words[8]) * _NS_IN_TICK if len(words) > 8 else 0


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # it has ended
        return ""
