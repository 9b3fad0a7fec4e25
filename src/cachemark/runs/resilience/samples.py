"""Samples what the client's processes use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cachemark.analysis.resilience.figures import ProcessSample
from cachemark.endpoints.servers.running import merge_process_use, process_use
from cachemark.host.cpu_meter import family
from cachemark.host.run_delay import process_run_delay_ns


def sample(pid: int, root: Path = Path("/proc")) -> ProcessSample:
    """The use of a process and its descendants now. Ended processes count as nothing."""
    pids = family(pid)
    use = merge_process_use([use for each in pids if (use := process_use(each)) is not None])
    return ProcessSample(
        cpu_ns=use.cpu_ns,
        threads=use.threads,
        descriptors=sum(_descriptors(root / str(each) / "fd") for each in pids),
        rss_bytes=use.rss_bytes,
    )


def _descriptors(folder: Path) -> int:
    try:
        return len(list(folder.iterdir()))
    except OSError:
        return 0


def waits_ns(pids: Sequence[int]) -> dict[int, int]:
    """How long each process, with its children, has been runnable without a CPU so far."""
    return {pid: process_run_delay_ns(pid) for pid in pids}
