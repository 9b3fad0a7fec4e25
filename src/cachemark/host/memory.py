"""Memory that is left on this machine, and the refusal to fill it."""

from __future__ import annotations

from pathlib import Path

from cachemark.host.files import field, kib_field, read
from cachemark.model.errors import UsageError

# Below this the kernel begins to reclaim and to swap, and every figure is about that.
MIN_FREE_BYTES = 256 * 2**20
_REMEDY = "use fewer clients or servers at once, or --set design=trials"
_CGROUP = Path("sys/fs/cgroup")


def available_bytes(root: Path = Path("/")) -> int | None:
    """Free bytes for processes: the least of the machine and of this process's cgroup (v2)."""
    known = [
        left
        for left in (kib_field(read(root / "proc/meminfo"), "MemAvailable"), _cgroup_left(root))
        if left is not None
    ]
    return min(known, default=None)


def _cgroup_left(root: Path) -> int | None:
    limit, used = read(root / _CGROUP / "memory.max"), read(root / _CGROUP / "memory.current")
    if not (limit.isdecimal() and used.isdecimal()):
        return None
    # The kernel frees pages of files when it needs memory, so they are not used up.
    facts = read(root / _CGROUP / "memory.stat")
    files = [field(facts, name, " ") for name in ("inactive_file", "active_file")]
    return int(limit) - int(used) + sum(int(of) for of in files if of.isdecimal())


def check_planned_memory(what: str, needed_bytes: int, root: Path = Path("/")) -> None:
    """Raise UsageError if `what` would leave too little memory."""
    left = available_bytes(root)
    if left is not None and left < needed_bytes + MIN_FREE_BYTES:
        raise UsageError(
            f"{what}: together they need about {needed_bytes // 2**20} MiB of memory, and "
            f"{max(0, left - MIN_FREE_BYTES) // 2**20} MiB are free",
            _REMEDY,
        )


def check_memory(what: str, root: Path = Path("/")) -> None:
    """Raise UsageError if `what` has left too little memory."""
    left = available_bytes(root)
    if left is not None and left < MIN_FREE_BYTES:
        raise UsageError(
            f"{what}: only {left // 2**20} MiB of memory are left",
            _REMEDY,
        )
