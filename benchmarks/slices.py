"""The cost of a worker: the overhead of a slice, in wall time and CPU time, and its memory.

    python benchmarks/slices.py native python/pymemcache

An empty slice shows the request and its answer alone. A slice of 5 ms also includes the work at its
end (the last reply, barriers, counting); its CPU time includes the operations of the slice. The
memory is the most that the worker's process held in RAM, with the pages that it shares.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cachemark.endpoints.capabilities import supported_wires
from cachemark.endpoints.clients import ClientSpec, parse_client, registry
from cachemark.endpoints.fleet import Fleet, RunMonitor
from cachemark.endpoints.servers import parse_spec, running
from cachemark.endpoints.servers.running import process_use
from cachemark.host.process import binary_path
from cachemark.model.protocol import Prepare, RunRequest, Slice

_SLICES = (Slice(length_us=0), Slice(length_us=5_000, lead_in_us=1_000))
_COUNT = 200
_ANSWER_S = 60.0
_TAPE = ("--keys", "100", "--size", "100", "--mix", "get=9,set=1", "--ops", "1000")


def main(clients: list[str]) -> None:
    """Print a row for each client and slice."""
    known = registry(binary_path())
    print(f"medians and p90 of {_COUNT} slices, in µs")
    print(
        f"{'client':24}{'slice':>6}{'overhead':>14}{'worker CPU':>14}{'own CPU':>14}{'memory':>12}"
    )
    with tempfile.TemporaryDirectory() as folder:
        tape = Path(folder) / "tape"
        command = [binary_path(), "tape", "write", "--out", str(tape), *_TAPE]
        subprocess.run(command, check=True, capture_output=True)
        for name in clients:
            _client(parse_client(name, known), tape)


def _client(spec: ClientSpec, tape: Path) -> None:
    in_process = spec.client.in_process
    with (
        Fleet(spec.client.command, 1, cpus="", name=spec.text) as fleet,
        running(parse_spec("none" if in_process else "embedded")) as server,
    ):
        wire = supported_wires(fleet.hello(_ANSWER_S))[0]
        request = Prepare(servers=server.addresses, wire=wire, tape=str(tape), options=spec.options)
        fleet.prepare(request, _ANSWER_S)
        watch = RunMonitor(progress=lambda _: None, silence_timeout_s=_ANSWER_S)
        fleet.run(RunRequest(phase="prefill"), watch)
        fleet.begin_slices(_ANSWER_S)
        for request in _SLICES:
            columns = zip(*(_slice(fleet, request) for _ in range(_COUNT)), strict=True)
            figures = "".join(f"{_figure(list(column)):>14}" for column in columns)
            memory = sum(_peak_mib(worker.pid) for worker in fleet.workers)
            print(f"{spec.text:24}{request.length_us:>6}{figures}{memory:>8.0f} MiB", flush=True)
        fleet.end_slices()
        fleet.bye()


def _slice(fleet: Fleet, request: Slice) -> tuple[float, float, float]:
    """Play a slice: its wall time over its length, the worker's CPU time, and this process's."""
    clock = ~fleet.workers[0].pid << 3 | 2  # the kernel's number of a process's CPU clock
    worker_s, own_s, began_s = time.clock_gettime(clock), time.process_time(), time.perf_counter()
    fleet.slice(request)
    ended_s, own_end_s = time.perf_counter(), time.process_time()
    overhead_s = ended_s - began_s - request.length_us / 1e6
    return overhead_s, time.clock_gettime(clock) - worker_s, own_end_s - own_s


def _peak_mib(pid: int) -> float:
    use = process_use(pid)
    return use.rss_peak_bytes / 2**20 if use else 0.0


def _figure(times_s: list[float]) -> str:
    p90_s = sorted(times_s)[len(times_s) * 9 // 10]
    return f"{statistics.median(times_s) * 1e6:.0f} / {p90_s * 1e6:.0f}"


if __name__ == "__main__":
    main(sys.argv[1:])
