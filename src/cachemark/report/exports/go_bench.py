"""The trials in Go's benchmark format, a line each, for benchstat.

A name has the cell as `/key=value` parts, so `benchstat -col /client` compares clients, and two
files two runs; a slash inside a value becomes a colon, other letters that a name may not have are
percent-encoded. The number after the last dash is callers at the same time. `ns/op` is what it is
in Go, the window's length for each operation, so it stands only with all kinds together. A
percentile that a trial has too few operations for, or that its verdict withholds, is left out of
that trial's line.
"""

from urllib.parse import quote

from cachemark.analysis.statistics import kind_rate, trial_response_ns, window_rate
from cachemark.report.series import ALL, ExportedRun, OperationSeries, Series, cpu_us

_UNITS = {
    "ops/s": "higher",
    "p50-ns": "lower",
    "p99-ns": "lower",
    "p99.9-ns": "lower",
    "client-cpu-ns/op": "lower",
    "server-cpu-ns/op": "lower",
}
_PERCENTILES = {"p50-ns": 50.0, "p99-ns": 99.0, "p99.9-ns": 99.9}


def render(run: ExportedRun) -> dict[str, str]:
    """The benchmark file."""
    host = run.header.host
    lines = [f"# cachemark {run.header.cachemark}, run {run.header.id}"]
    lines += [f"# left out: {reason}" for reason in run.left_out]
    lines += ["goos: linux", f"cpu: {host.cpu_model or 'unknown'}"]
    lines += [f"Unit {unit} better={better}" for unit, better in _UNITS.items()]
    for series in run.series:
        for part in series.parts:
            name = _name(series, part)
            lines += [
                _line(name, series, part, number) for number in range(len(series.windows))
                if part.trials[number]
            ]  # fmt: skip
    return {"bench.txt": "\n".join(lines) + "\n"}


def _name(series: Series, part: OperationSeries) -> str:
    cell = series.cell
    parts = {
        "workload": cell.workload,
        "load": cell.load,
        "server": cell.server,
        "client": cell.client,
        "op": part.kind,
    }
    words = [f"{key}={quote(value.replace('/', ':'), ':=?&,+@')}" for key, value in parts.items()]
    return f"BenchmarkCachemark/{'/'.join(words)}-{series.callers}"


def _line(name: str, series: Series, part: OperationSeries, number: int) -> str:
    operations, window = part.trials[number], series.windows[number]
    done = sum(operation.succeeded for operation in operations)
    values: dict[str, float | None] = {}
    if part.kind == ALL:
        values["ns/op"] = window.elapsed_ns / done
    trial, kind = series.outcomes[number], "" if part.kind == ALL else part.kind
    values["ops/s"] = window_rate(trial) if part.kind == ALL else kind_rate(trial, [kind])
    values |= {
        unit: trial_response_ns(trial, percent, kind) for unit, percent in _PERCENTILES.items()
    }
    if part.kind == ALL:
        used = {f"{side}-cpu-ns/op": cpu_us(trial, side) for side in ("client", "server")}
        values |= {unit: us * 1e3 for unit, us in used.items() if us}
    values_text = "\t".join(
        f"{value:.6g} {unit}" for unit, value in values.items() if value is not None
    )
    return f"{name}\t{done}\t{values_text}"
