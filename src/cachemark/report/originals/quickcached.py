"""The run as QuickCached's wiki shows its load test: Markdown tables, a row for each trial.

A table for each server, workload, wire and client; in it a row for each valid trial, the loads in
the order of the run. Threads: callers at the same time. No. of Txn: transactions done in the
window; a transaction is one pass of a sequence, one of each kind where all of the first are done
before the second (as QuickCached does set, get and delete), else one operation. Timeout: how many
operations timed out. Avg Time: the window's length divided by its transactions, so it is an
inverse throughput and no latency, here as there.

The original's mean goes over all numbers of threads; here each has its own.
"""

from cachemark.analysis.statistics import ok
from cachemark.report.originals.figures import ops_per_txn, totals, txn_ms
from cachemark.report.originals.quotes import quoted_lines
from cachemark.report.series import ExportedRun, Series

_COLUMNS = ("Threads", "No. of Txn", "Timeout", "Client", "Avg Time (ms)")


def render(run: ExportedRun) -> dict[str, str]:
    """The Markdown."""
    header = run.header
    lines = [
        f"# {header.experiment.name}",
        "",
        f"Server and client on {header.host.cpu_model or 'an unknown CPU'}, {header.host.system}; "
        f"cachemark {header.cachemark}, run {header.id}.",
        "",
        "Avg Time is the length of the window divided by its transactions: an inverse throughput, "
        "not a latency.",
    ]
    tables: dict[tuple[str, ...], list[Series]] = {}
    for series in run.series:
        cell = series.cell
        key = (cell.server, cell.workload, series.load.wire, cell.client)
        tables.setdefault(key, []).append(series)
    shown: tuple[str, ...] = ()
    for key, members in tables.items():
        if key[:3] != shown:
            shown = key[:3]
            lines += ["", f"**{_title(members[0])}**"]
        lines += ["", *_table(members), "", *_means(members)]
    lines += quoted_lines(run.header.experiment.name, heading="**{}**")
    if run.left_out:
        lines += ["", "Left out:", "", *[f"- {reason}" for reason in run.left_out]]
    return {"quickcached.md": "\n".join(lines) + "\n"}


def _title(series: Series) -> str:
    version, wire = series.summary.server_version, series.load.wire
    kind = f"{wire} mode" if wire != "own" else "its own mode"
    server = f"{series.cell.server} {version}".strip()
    each = ops_per_txn(series.workload)
    return (
        f"{series.workload.name} with server {server}. Client in {kind}. "
        f"A transaction is {each} operation{'s' if each > 1 else ''}"
    )


def _table(members: list[Series]) -> list[str]:
    rows = [
        (
            str(series.callers),
            f"{ok(window) / ops_per_txn(series.workload):.0f}",
            str(sum(op.errors.get("timeout", 0) for op in window.operations.values())),
            series.cell.client,
            f"{txn_ms(totals([window]), series.workload):.4g}",
        )
        for series in members
        for window in series.windows
    ]
    bold = [f"**{column}**" for column in _COLUMNS]
    widths = [max(len(row[at]) for row in [bold, *rows]) for at in range(len(_COLUMNS))]
    rule = "|" + "|".join(":" + "-" * (width + 1) for width in widths) + "|"
    return [_row(bold, widths), rule, *[_row(row, widths) for row in rows]]


def _row(cells: list[str] | tuple[str, ...], widths: list[int]) -> str:
    return "| " + " | ".join(c.ljust(width) for c, width in zip(cells, widths, strict=True)) + " |"


def _means(members: list[Series]) -> list[str]:
    """For each load: the total length of the windows, divided by all their transactions."""
    lines = ["```"]
    for series in members:
        threads = f"{series.callers} thread{'s' if series.callers > 1 else ''}"
        of = f" ({series.load.name}, {threads})" if len(members) > 1 else ""
        each = txn_ms(totals(series.windows), series.workload)
        lines += [
            f"Avg Time per Txn{of}: {each:.4g} ms",
            f"Avg Time per Operation{of}: {each / ops_per_txn(series.workload):.4g} ms",
        ]
    return [*lines, "```"]
