"""How long processes were runnable without a CPU, from the scheduler's statistics."""

from __future__ import annotations

from pathlib import Path

_NS_IN_TICK = 10_000_000


def run_delay_ns(pids: list[int], root: Path = Path("/")) -> int:
    """Time on run queues since their start, of all threads of processes and of their children.

    Includes the time that the hypervisor took from all CPUs (steal), which the scheduler does not
    know. Threads that have ended are not included. 0 if the kernel has no such statistics.
    """
    return sum(process_run_delay_ns(pid, root) for pid in pids) + _steal_ns(root)


def process_run_delay_ns(pid: int, root: Path = Path("/")) -> int:
    """The same of one process with its children, without steal; 0 if it has ended."""
    waited = 0
    for task in (root / "proc" / str(pid) / "task").glob("*"):
        # The fields: ns on a CPU, ns on a run queue, number of time slices.
        words = _read(task / "schedstat").split()
        waited += int(words[1]) if len(words) == 3 else 0
        children = map(int, _read(task / "children").split())
        waited += sum(process_run_delay_ns(child, root) for child in children)
    return waited


def _steal_ns(root: Path) -> int:
    words = _read(root / "proc/stat").partition("\n")[0].split()
    return int(words[8]) * _NS_IN_TICK if len(words) > 8 else 0


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # the thread or process has ended
        return ""
