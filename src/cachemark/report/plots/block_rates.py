"""Throughput block by block, which shows whether the machine's speed drifted."""

from collections.abc import Sequence

from cachemark.analysis.number_format import number
from cachemark.report.document import Plot, Table, plain_table
from cachemark.report.model import Group, TrialRow
from cachemark.report.plots.layout import SI_LABEL
from cachemark.report.plots.line_chart import ChartLine, ChartPoint, count_axis, line_plot
from cachemark.report.plots.plot import slug
from cachemark.report.tables import group_title


def block_rates(group: Group, trials: Sequence[TrialRow], width: int) -> Plot | None:
    """Each client's valid trials, a point for each block; None where there is but one block.

    In an open loop the schedule sets the rate, so it shows nothing.
    """
    rates = _rates(group, trials)
    blocks = sorted({block for by_block in rates.values() for block in by_block})
    if group.metric != "rate" or len(blocks) < 2:
        return None
    clients = [row.name for row in group.rows if row.name in rates]
    series = {row.name: row.series for row in group.rows}
    lines = [_line(client, rates[client], series[client]) for client in clients]
    return line_plot(
        lines,
        width,
        name=slug("blocks", group.workload, group.load, group.common),
        title="Throughput, block by block",
        caption="If all lines rise and fall together, the machine’s speed changed. Clients are "
        "compared within blocks, so this does not affect the comparison.",
        about=f"operations per second in each of {len(blocks)} blocks",
        told=lambda line: f"{line.label} {', '.join(number(mark.y) for mark in line.marks)}",
        x=count_axis("block", blocks),
        y_title="operations per second",
        y_labels=SI_LABEL,
        height=260,
        subtitle=group_title(group),
        table=_table(clients, blocks, rates),
    )


def _rates(group: Group, trials: Sequence[TrialRow]) -> dict[str, dict[int, float]]:
    rates: dict[str, dict[int, float]] = {}
    for trial in trials:
        if trial.ops_per_s and group.has(trial.cell):
            rates.setdefault(group.name_of(trial.cell), {})[trial.block + 1] = trial.ops_per_s
    return rates


def _line(client: str, rates: dict[int, float], series: int | None) -> ChartLine:
    marks = [
        ChartPoint(x=block, y=rate, description=f"{client}, block {block}: {number(rate)} ops/s")
        for block, rate in sorted(rates.items())
    ]
    return ChartLine(label=client, marks=marks, series=series)


def _table(clients: list[str], blocks: list[int], rates: dict[str, dict[int, float]]) -> Table:
    rows = [
        [client, *["–" if b not in rates[client] else number(rates[client][b]) for b in blocks]]
        for client in clients
    ]
    return plain_table(columns=["client", *[f"block {block}" for block in blocks]], rows=rows)
