"""The run as Ruby's `Benchmark.bm` prints one: user, system, total and real seconds.

A block for each client, a row for each cell: `client:workload`, then the load and the server where
there are several. Windows differ in length and in what was done in them, so each row is what
100,000 iterations took, as in the original: the valid trials' seconds together, divided by their
iterations. An iteration is the workload's sequence; without one, it is one operation. `user` and
`system` are the client processes', `real` the windows'. A client that does not tell its CPU has no
row but a line that says so. A run of the original's suite has the published rows at the end.
"""

from cachemark.report.originals.figures import ITERATIONS, loop_seconds
from cachemark.report.originals.quotes import quoted_lines
from cachemark.report.series import ExportedRun, Series

_CAPTION = "      user     system      total        real"


def render(run: ExportedRun) -> dict[str, str]:
    """The text."""
    timed = [(series, loop_seconds(series.outcomes)) for series in run.series]
    with_cpu = [(series, seconds) for series, seconds in timed if seconds]
    labels = {id(series): _label(series, run) for series, _ in with_cpu}
    width = max(map(len, labels.values()), default=0)
    lines = [f"Seconds for {ITERATIONS:,} iterations: of the sequence, or of one operation"]
    for client in dict.fromkeys(series.cell.client for series, _ in with_cpu):
        lines += ["", f"================== {client} ==================", " " * width + _CAPTION]
        lines += [
            labels[id(series)].ljust(width) + row(*seconds)
            for series, seconds in with_cpu
            if series.cell.client == client
        ]
    without_cpu = [series for series in run.series if id(series) not in labels]
    reasons = [f"{_label(series, run)}: the client tells no CPU" for series in without_cpu]
    if reasons or run.left_out:
        lines += ["", "Left out:", *reasons, *run.left_out]
    lines += quoted_lines(run.header.experiment.name)
    return {"benchmark.txt": "\n".join(lines) + "\n"}


def row(user: float, system: float, real: float) -> str:
    """The four columns, in Ruby's own format."""
    return f" {user:10.6f} {system:10.6f} {user + system:10.6f} ({real:10.6f})"


def _label(series: Series, run: ExportedRun) -> str:
    cell, experiment = series.cell, run.header.experiment
    parts = [cell.client, cell.workload]
    parts += [cell.load] if len(experiment.loads) > 1 else []
    parts += [cell.server] if len(experiment.servers) > 1 else []
    return ":".join(parts)
