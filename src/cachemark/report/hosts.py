"""The hosts of a run over several, and the generators that made load beside a client."""

from collections.abc import Iterator, Sequence

from cachemark.analysis.number_format import number, time
from cachemark.model import histogram
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.protocol import Done
from cachemark.model.protocol_results import attempts_of
from cachemark.model.run_header import HostsOfRun, RunHeader
from cachemark.report.cells import cell_title
from cachemark.report.model import Section

_COLUMNS = ["host", "roles", "machine", "clock offset", "late", "operations", "steal", "others"]


def placement_text(hosts: HostsOfRun | None) -> str:
    """Which host does what, for comparisons of runs."""
    if hosts is None:
        return "one host"
    return ", ".join(
        f"{host.name} {'+'.join(host.roles)}" + (f" on CPUs {host.cpus}" if host.cpus else "")
        for host in hosts.plan.hosts
    )


def sections(header: RunHeader, outcomes: Sequence[Outcome]) -> list[Section]:
    """One row for each host; empty for a run on one host."""
    if header.hosts is None:
        return []
    skews_ms = [o.start_skew_ns / 1e6 for o in outcomes if o.start_skew_ns is not None]
    notes = [
        "clock offset: to the coordinator's, in the last trial, with its greatest error; "
        "late, steal, others (CPU time of other processes): the worst of all trials"
    ]
    clients = len(header.hosts.plan.clients)
    named = any(load.hosts for load in header.experiment.loads)
    fewer = ", or of as many as a load names" if named else ""
    if clients > 1:
        notes.append(
            f"rates belong to all {clients} hosts of clients together{fewer}; a load's "
            "processes, threads and connections belong to each"
        )
    if skews_ms:
        notes.append(f"the hosts of a trial started at most {max(skews_ms):.2f} ms apart")
    return [
        Section(
            title="Hosts",
            topic="hosts",
            columns=_COLUMNS,
            rows=[_row(header.hosts, host.name, outcomes) for host in header.hosts.plan.hosts],
            notes=notes,
            prose=True,
        )
    ]


def _row(hosts: HostsOfRun, name: str, outcomes: Sequence[Outcome]) -> list[str]:
    facts, entry = hosts.facts[name], hosts.plan.named(name)
    parts = [part for outcome in outcomes for part in outcome.hosts if part.name == name]
    clock = "–"
    if parts:
        error_us = max(part.clock_error_ns for part in parts) / 1e3
        clock = f"{parts[-1].clock_offset_ns / 1e3:+,.0f} ± {error_us:,.0f} µs"
    played = [part.measure.operations for part in parts if part.measure]
    return [
        name,
        ", ".join(entry.roles),
        f"{facts.cpu_model or 'unknown CPU'}, {facts.cpus} CPUs, Linux {facts.kernel}",
        clock,
        _worst([part.late_ns / 1e3 for part in parts if part.late_ns is not None], "µs"),
        f"{sum(map(attempts_of, played)):,}" if "client" in entry.roles else "–",
        _worst([part.noise.steal_percent for part in parts if part.noise], "%"),
        _worst([part.noise.foreign_cpu_percent for part in parts if part.noise], "%"),
    ]


def _worst(values: Sequence[float | None], unit: str) -> str:
    known = [value for value in values if value is not None]
    return f"{max(known):,.1f} {unit}" if known else "–"


_GENERATOR_COLUMNS = ["cell", "load by", "rate due", "rate done", "operations", "p50", "p99"]


def generator_sections(outcomes: Sequence[Outcome]) -> list[Section]:
    """A row for each cell and each host that made its load; empty where clients were alone."""
    loaded: dict[Cell, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.generated is not None:
            loaded.setdefault(outcome.trial.cell, []).append(outcome)
    if not loaded:
        return []
    return [
        Section(
            title="Load generators",
            topic="hosts",
            columns=_GENERATOR_COLUMNS,
            rows=[row for cell, trials in loaded.items() for row in _generator_rows(cell, trials)],
            notes=[
                "Over all trials of a cell. These are the response times of the generators; a cell "
                "has the times of its measuring client. A cell's rate is the sum of both."
            ],
            prose=True,
        )
    ]


def _generator_rows(cell: Cell, trials: Sequence[Outcome]) -> Iterator[list[str]]:
    """The generators of a cell together; where they are several hosts, also each of them."""
    first = trials[0]
    due = number(first.load.rate) if first.load.rate else "closed loop"
    by = first.generators.client if first.generators else ""
    yield [
        cell_title(cell),
        by,
        due,
        *_figures([trial.generated for trial in trials if trial.generated]),
    ]
    names = [part.name for part in first.hosts if "load" in part.roles]
    for name in names if len(names) > 1 else []:
        parts = [
            part.measure
            for trial in trials
            for part in trial.hosts
            if part.name == name and part.measure
        ]
        yield [cell_title(cell), name, "–", *_figures(parts)]


def _figures(windows: Sequence[Done]) -> list[str]:
    """Rate, count and percentiles of some windows together."""
    operations = [operation for window in windows for operation in window.operations.values()]
    done = sum(operation.succeeded for operation in operations)
    elapsed_ns = sum(window.elapsed_ns for window in windows)
    times = histogram.merge_encoded(operation.response for operation in operations)
    percentiles = [time(times.percentile(percent)) if times else "–" for percent in (50, 99)]
    return [number(done * 1e9 / max(1, elapsed_ns)), f"{done:,}", *percentiles]
