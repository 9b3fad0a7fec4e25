"""The counts of one operation of every client that is set up: docs/data/why-2026-11.csv.

    python benchmarks/why_clients.py              count all clients again, language by language
    python benchmarks/why_clients.py rust ruby count some languages, keep the other rows
    python benchmarks/why_clients.py perl/chi  count some clients, keep the other rows

A row is a client and a kind of operation. Columns `error` are half of a 99 % interval. `calls_us`
is what the kernel takes for the calls, waits and page faults by themselves (`cachemark-engine
unit-costs`), `unexplained_us` the rest of the kernel's time.
"""

import csv
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import msgspec

from cachemark.analysis.why.estimate import estimate_of, mean_of
from cachemark.analysis.why.report import WhyReport
from cachemark.endpoints.client_readiness import query_worker
from cachemark.endpoints.clients import Client, registry
from cachemark.host.process import binary_path
from cachemark.model.counts import COSTING, CountedWork, Counts, UnitCosts
from cachemark.runs.counting.counting import runtime_of

TABLE = Path(__file__).resolve().parent.parent / "docs" / "data" / "why-2026-11.csv"
REPEAT = "3"
FIGURES = [
    *("user_us", "system_us", "calls_us", "unexplained_us", "waiting_us"),
    *("turns", "pieces", "sends", "full_recvs", "empty_recvs", "polls", "timers", "options"),
    *("futexes", "wakes", "memory", "files", "connects", "others", "switches", "waiting_threads"),
    *("faults", "allocations", "allocated_bytes", "copies", "collection_us"),
    *("bytes_in", "bytes_out", "segments_in", "segments_out", "acknowledgements"),
]
WITH_ERROR = ("user_us", "system_us", "unexplained_us", "waiting_us", "allocations")
# Clients without a library.
_NONE = frozenset({"", "null", "shm", "socket"})
COLUMNS = ["client", "version", "kind", "failure"]


def clients(names: Sequence[str]) -> list[Client]:
    """The clients with a library: all, or those that are named or whose languages are."""
    found = registry(binary_path()).values()
    named = [each for each in found if not names or {runtime_of(each), each.id} & set(names)]
    return [each for each in named if each.id.partition("/")[2] not in _NONE or each.id == "native"]


def count(names: Sequence[str]) -> WhyReport:
    """The answer of `cachemark why` about these clients; a client that fails is in it."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "why.json"
        words = [word for name in names for word in ("--client", name)]
        command = ["cachemark", "why", *words, "--repeat", REPEAT, "--format", "json", "--out", out]
        subprocess.run(command, check=False)  # its status is 1 if a client failed
        return msgspec.json.decode(out.read_bytes(), type=WhyReport)


def row(of: CountedWork, units: Sequence[UnitCosts]) -> dict[str, str]:
    """A line of the table; what was not counted is empty."""
    found = {"client": of.client, "version": of.version, "kind": of.kind, "failure": of.failure}
    calls = [_calls_us(counts, unit) for counts, unit in zip(of.repetitions, units, strict=False)]
    known = [value for value in calls if value is not None]
    rest = [
        each.system_us - value
        for each, value in zip(of.repetitions, calls, strict=False)
        if value is not None and each.system_us is not None
    ]
    for figure in FIGURES:
        estimates = {"calls_us": mean_of(known), "unexplained_us": mean_of(rest)}
        estimate = estimates[figure] if figure in estimates else estimate_of(of.repetitions, figure)
        # Fewer than the language's loop: that loop does work which this client does not.
        if estimate and figure != "unexplained_us" and estimate.value + estimate.error < 0:
            estimate = None
        found[figure] = f"{estimate.value:.2f}" if estimate else ""
        if figure in WITH_ERROR:
            found[f"{figure}_error"] = f"{estimate.error:.2f}" if estimate else ""
    return found


def _calls_us(of: Counts, unit: UnitCosts) -> float | None:
    """The cost in µs of all calls, waits and page faults; None if they were not counted."""
    if of.sends is None:
        return None
    pairs = [(getattr(of, name), getattr(unit, name)) for name in COSTING]
    return sum(max(0.0, number) * cost for number, cost in pairs if number and cost)


def main(names: Sequence[str]) -> None:
    """Count, language by language, and write the table after each."""
    header = [*COLUMNS]
    for figure in FIGURES:
        header += [figure, f"{figure}_error"] if figure in WITH_ERROR else [figure]
    rows: dict[tuple[str, str], dict[str, str]] = {}
    if TABLE.exists():
        with TABLE.open(newline="") as table:
            rows = {(each["client"], each["kind"]): each for each in csv.DictReader(table)}
    for runtime, group in groupby(clients(names), runtime_of):
        ready: list[str] = []
        for client in group:
            readiness = query_worker(client)
            rows = {key: row for key, row in rows.items() if key[0] != client.id}
            if readiness.ready is None:
                rows[client.id, ""] = {"client": client.id, "failure": readiness.state}
            else:
                ready.append(client.id)
        print(f"{runtime}: {', '.join(ready) or 'none is set up'}", flush=True)
        if ready:
            report = count(ready)
            rows |= {(of.client, of.kind): row(of, report.unit_costs) for of in report.counted}
        with TABLE.open("w", newline="") as table:
            writer = csv.DictWriter(table, header, lineterminator="\n")
            writer.writeheader()
            writer.writerows(each for _, each in sorted(rows.items()))


if __name__ == "__main__":
    main(sys.argv[1:])
