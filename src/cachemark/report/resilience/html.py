"""The matrix as a page for everybody, and a page for each client for its maintainers."""

import base64
import re
from collections.abc import Sequence

from markupsafe import Markup

from cachemark.analysis.resilience.cell import CellOutcome, ResilienceHeader
from cachemark.analysis.resilience.figures import TIMELINE_SLICE_MS
from cachemark.analysis.resilience.verdict import RULES, ClientVerdict
from cachemark.model.faults import Fault, FaultGroup
from cachemark.model.foreign_text import clean, clean_all
from cachemark.report.html.environment import environment, style_sheet
from cachemark.report.resilience.known_issues import issues_of
from cachemark.report.resilience.matrix import MatrixRow, reasons, summary_of

INDEX = "index.html"
_PACKAGE = "cachemark.report.resilience"
_SHOWN_BYTES = 64
HEADINGS: dict[FaultGroup, str] = {
    "server": "The server stops, dies or moves",
    "network": "The network fails",
    "replies": "Replies are wrong",
    "callers": "Callers give up",
    "TLS": "The certificate is bad",
}
MEANINGS: dict[ClientVerdict, str] = {
    "unsafe": "a caller got data that is not the key's, or used a server that it must not trust",
    "hangs": "a call waited for as long as the fault lasted, or the client did not recover",
    "degraded": "it survived, and something was slower or costlier than it has to be",
    "safe": "it broke none of the rules",
}

# From the axis up. All readers can tell the colours of Okabe and Ito apart.
COLOURS = {
    "right": "#009e73",
    "false miss": "#56b4e9",
    "timeout": "#e69f00",
    "connection": "#f0e442",
    "server": "#cc79a7",
    "client": "#999999",
    "protocol": "#0072b2",
    "stale": "#d55e00",
    "wrong": "#d50000",
}
_WIDTH, _HEIGHT, _AXIS = 720, 90, 14


def pages(rows: Sequence[MatrixRow], faults: Sequence[Fault], about: str) -> dict[str, str]:
    """The pages by file name; `about` says when, where and with what the run was made."""
    rows, about = [clean_all(row) for row in rows], clean(about)
    groups = {name: [fault for fault in faults if fault.group == name] for name in HEADINGS}
    index = _page(
        "index.html.jinja",
        about,
        rows=rows,
        groups={name: members for name, members in groups.items() if members},
        headings=HEADINGS,
        verdicts=MEANINGS,
        rules=RULES,
    )
    files = {INDEX: index}
    for client in dict.fromkeys(row.client for row in rows):
        mine = [row for row in rows if row.client == client]
        abouts = {fault.name: fault.about for fault in faults}
        files[file_name(client)] = _page(
            "client.html.jinja", about, client=client, rows=mine, abouts=abouts
        )
    return files


def about_run(header: ResilienceHeader, outcomes: Sequence[CellOutcome]) -> str:
    """When, where and with what a run was made."""
    jobs = max((one.jobs for one in outcomes), default=1)
    return (
        (f"{header.name}: " if header.name else "")
        + f"{header.created_at}, cachemark {header.cachemark}, "
        f"{header.host.tools.get('memcached', 'memcached')}, {header.host.cpu_model}, "
        f"{header.host.cpus} CPUs, {header.host.system}; sittings: {header.plan.sittings}"
        + (f"; up to {jobs} cells side by side" if jobs > 1 else "")
    )


def file_name(client: str) -> str:
    """The name of a client's page."""
    return re.sub(r"[^a-z0-9.@]+", "-", client.lower())[:100] + ".html"


def _page(template: str, about: str, **values: object) -> str:
    return (
        environment(_PACKAGE)
        .get_template(template)
        .render(
            about=about,
            drawing=timeline_svg,
            reasons=reasons,
            page_of=file_name,
            issues_of=issues_of,
            summary_of=summary_of,
            shown_bytes=_shown_bytes,
            figures_of=_figures,
            colours=COLOURS,
            style=Markup(style_sheet(_PACKAGE)),
            **values,
        )
    )


def _shown_bytes(value: str) -> str:
    """The first bytes of a wrong value, as Python writes them."""
    try:
        data = base64.b64decode(value)
    except ValueError:
        return "not base64"
    more = f" … ({len(data)} bytes)" if len(data) > _SHOWN_BYTES else ""
    return f"{data[:_SHOWN_BYTES]!r}{more}"


def _figures(outcome: CellOutcome) -> list[tuple[str, str]]:
    figures = outcome.figures
    if figures is None:
        return []
    more = "" if figures.cpus_more is None else f", {figures.cpus_more:+.2f} to before it"

    def ms(value: float | None) -> str:
        return "–" if value is None else f"{value:,.1f} ms"

    def counts(values: dict[str, int]) -> str:
        return ", ".join(f"{count:,} {name}" for name, count in values.items()) or "none"

    return [
        ("calls that ended in the fault", counts(figures.during)),
        ("calls that ended after it", counts(figures.after)),
        ("reads that found nothing", f"{figures.misses:,}"),
        ("first error", ms(figures.first_error_ms)),
        ("longest call", ms(figures.longest_ms)),
        ("p99 of calls in the fault", ms(figures.p99_during_ms)),
        ("recovered after the fault", ms(figures.recovery_ms)),
        ("connections opened since the fault began", f"{figures.connections:,}"),
        ("CPUs used in the fault", f"{figures.cpus:.2f}{more}"),
        ("more threads, descriptors", f"{figures.threads_grown:+}, {figures.descriptors_grown:+}"),
        ("calls that were due and never sent", f"{figures.unsent:,}"),
        ("watched after the fault", f"{figures.watched_s:.1f} s"),
        ("cells played side by side", f"{outcome.jobs}"),
        ("longest pause of the machine", ms(figures.longest_pause_ms)),
        ("threads that waited for a CPU", f"{figures.waiting_threads:.2f}"),
    ]


def timeline_svg(outcome: CellOutcome) -> Markup:
    """A stacked bar for each slice of 100 ms; empty if the cell was not played.

    It has no text of a worker or server.
    """
    phases, slices = outcome.phases, outcome.timeline
    if phases is None or not slices:
        return Markup()
    step = _WIDTH / len(slices)
    most = max(1, *(sum(counts.values()) for counts in slices))

    def x_of(instant_ns: int) -> float:
        return (instant_ns - phases.start_ns) / 1e6 / TIMELINE_SLICE_MS * step

    begin, end = x_of(phases.fault_ns), x_of(phases.fault_end_ns)
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT + _AXIS}" role="img" class="timeline">',
        "<title>Calls that ended in each 0.1 s, by outcome; the fault is shaded</title>",
        f'<rect x="{begin:.1f}" y="0" width="{end - begin:.1f}" height="{_HEIGHT}" class="fault"/>',
    ]
    below = [0.0] * len(slices)
    for answer, colour in COLOURS.items():
        bars: list[str] = []
        for at, counts in enumerate(slices):
            high = counts.get(answer, 0) / most * _HEIGHT
            if high:
                below[at] += high
                x, y, wide = at * step, _HEIGHT - below[at], step * 0.9
                bars.append(f"M{x:.1f} {y:.1f}h{wide:.1f}v{high:.1f}h-{wide:.1f}z")
        if bars:
            parts.append(f'<path fill="{colour}" d="{"".join(bars)}"/>')
    for instant_ns in (phases.start_ns, phases.fault_ns, phases.fault_end_ns, phases.end_ns):
        text = f"{(instant_ns - phases.start_ns) / 1e9:.1f} s"
        x = min(max(x_of(instant_ns), 12), _WIDTH - 14)
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT + _AXIS - 2}">{text}</text>')
    return Markup("".join([*parts, "</svg>"]))
