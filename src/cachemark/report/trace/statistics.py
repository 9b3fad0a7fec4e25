"""The statistics of a trace as a document. Pure."""

from collections.abc import Callable
from functools import partial

from cachemark.analysis.number_format import counted, number, size
from cachemark.model.trace_statistics import (
    Estimate,
    KeyStatistics,
    ShownTrace,
    SizeDistribution,
    TraceStatistics,
)
from cachemark.report.document import Document, DocumentPart
from cachemark.report.trace import statistics_plots as plots
from cachemark.report.trace.document import trace_part
from cachemark.report.trace.statistics_plots import percent

_SHOWN_KEYS = 8
_KEYS = {"plain": "as they were", "anonymous": "by an irreversible hash"}


def document(shown: ShownTrace, path: str) -> Document:
    """The document of a trace that is in this file."""
    of = shown.statistics
    return Document(
        kind="The traffic of the trace",
        title=f"{path}: {_headline(of)}",
        facts=_facts(shown),
        warnings=_warnings(shown),
        parts=[_traffic(of), _sizes(of), _keys(of), _hot_keys(of), *_bursts(of), *_over_time(of)],
    )


def _headline(of: TraceStatistics) -> str:
    rate = (
        f" in {of.duration_s:,.1f} s, {number(of.requests / of.duration_s)}/s"
        if of.duration_s
        else ""
    )
    ratio = of.reads.hit_ratio
    hits = "" if ratio is None else f", hit ratio {percent(ratio)}"
    return f"{counted(of.requests)} requests{rate}{hits}"


def _facts(shown: ShownTrace) -> list[tuple[str, str]]:
    of = shown.statistics
    facts = [
        ("from", shown.origin.source),
        ("keys", _KEYS.get(shown.origin.keys, shown.origin.keys)),
    ]
    if of.duration_s:
        facts.append(("times", f"to {_seconds(of.resolution_s)}"))
    return facts


def _warnings(shown: ShownTrace) -> list[str]:
    origin, summary, of = shown.origin, shown.summary, shown.statistics
    lines: list[str] = []
    if origin.sampled > 1:
        lines.append(
            f"The file has one key of {origin.sampled:,}, with all its requests: rates, keys and "
            f"bytes belong to this part, and multigets are incomplete."
        )
    if of.keys.sampled < 1:
        lines.append(
            f"One key of {1 / of.keys.sampled:,.0f} was followed, chosen by its hash, as there are "
            f"too many; ± is the standard error. --keys follows more."
        )
    if left_out := [f"{count:,} {name}" for name, count in summary.left_out.items() if count]:
        lines.append(f"Not in the trace: {', '.join(left_out)}.")
    if summary.unused_columns:
        lines.append(f"Columns that are not used: {', '.join(summary.unused_columns)}.")
    if summary.reconnects:
        lines.append(f"The recorder connected again {summary.reconnects} times.")
    if not of.duration_s:
        lines.append("The trace has no times: nothing expires here, and there are no rates.")
    if of.reads.hit_ratio is None and of.reads.unknown:
        lines.append("The trace does not say which reads hit: a read counts as one that did.")
    if of.keys.without_size.value:
        lines.append(
            f"{_estimate(of.keys.without_size)} keys have no size in the trace: bytes here have "
            f"their keys only."
        )
    return lines


def _traffic(of: TraceStatistics) -> DocumentPart:
    rows = [
        [name, f"{count:,}", percent(count / of.requests), _rate(count, of.duration_s)]
        for name, count in sorted(of.operations.items(), key=lambda each: -each[1])
    ]
    notes: list[str] = []
    if of.multigets.multigets:
        keys = of.multigets.keys
        notes.append(
            f"{percent(of.multigets.multigets / keys.count)} of the requests that read are "
            f"multigets: {of.multigets.joined_keys / of.multigets.multigets:.1f} keys on average, "
            f"99 % of all have at most {keys.at(0.99)}, the largest {keys.max}."
        )
    if of.reads.hit_ratio is not None:
        notes.append(
            f"Reads: {of.reads.hits:,} hits, {of.reads.misses:,} misses"
            + (f", {of.reads.unknown:,} not known." if of.reads.unknown else ".")
        )
    columns = ["operation", "requests", "share", "per second"]
    return trace_part("Traffic", columns, rows, notes, partial(plots.traffic, of))


def _sizes(of: TraceStatistics) -> DocumentPart:
    sizes = [
        ("keys", of.key_bytes, "B"),
        ("values read", of.read_value_bytes, "B"),
        ("values written", of.written_value_bytes, "B"),
        ("expiry times", of.ttls.seconds, "s"),
        ("keys of a read", of.multigets.keys, ""),
    ]
    rows = [_size_row(name, each, unit) for name, each, unit in sizes if each.count]
    columns = ["what", "requests", "mean", "p50", "p90", "p99", "largest"]
    return trace_part("Sizes, by requests", columns, rows, _ttl_notes(of), partial(plots.sizes, of))


def _size_row(name: str, of: SizeDistribution, unit: str) -> list[str]:
    def text(value: float) -> str:
        return f"{value:,.6g} {unit}".rstrip()

    quantiles = [text(of.at(part)) for part in (0.5, 0.9, 0.99)]
    return [name, counted(of.count), text(round(of.mean, 1)), *quantiles, text(of.max)]


def _ttl_notes(of: TraceStatistics) -> list[str]:
    ttls = of.ttls
    if not ttls.writes:
        return []
    common = ", ".join(f"{each.ttl_s:,} s {percent(each.share)}" for each in ttls.common[:6])
    never = f"{percent(ttls.without / ttls.writes)} of the writes never expire"
    return [f"{never}; expiry times: {common}." if common else f"{never}."]


def _keys(of: TraceStatistics) -> DocumentPart:
    keys = of.keys
    rows = [
        ["keys", _estimate(keys.keys)],
        ["keys with one request", _share(keys.one_hit_wonders)],
        ["bytes of all keys and values", _estimate(keys.bytes, size)],
        ["most items alive at a time", _estimate(keys.most_live_items)],
        ["most bytes alive at a time", _estimate(keys.most_live_bytes, size)],
        ["Zipf exponent", _exponent(keys)],
        *[
            [f"share of the {top:,} hottest keys" if top > 1 else "share of the hottest key",
             f"at least {percent(share)}"]
            for top, share in of.top_shares
        ],
    ]  # fmt: skip
    notes = [
        "An item is alive from its first request until it expires or is deleted. The bytes are "
        "for keys and values: a server needs more for each item.",
        *_popularity_notes(keys),
    ]
    columns = ["what", "value"]
    return trace_part("Keys and working set", columns, rows, notes, partial(plots.keys, of))


def _exponent(keys: KeyStatistics) -> str:
    of = keys.popularity
    return "–" if of is None else f"{of.exponent:.3f} ±{of.error:.3f}"


def _popularity_notes(keys: KeyStatistics) -> list[str]:
    of = keys.popularity
    if of is None:
        return ["There is no exponent: fewer than 50 keys have 10 requests."]
    fits = "the law fits" if of.distance < 0.05 else "no single exponent fits well"
    return [
        f"The exponent is estimated by maximum likelihood from the counts of {counted(of.keys)} "
        f"keys with at least {of.least_count} requests. Its largest distance to them is "
        f"{of.distance:.3f}: {fits}."
    ]


def _hot_keys(of: TraceStatistics) -> DocumentPart:
    rows = [
        [
            key.key,
            f"{key.count:,}" if not key.error else f"{key.count - key.error:,}–{key.count:,}",
            percent((key.count - key.error) / of.requests),
            _rate(key.count - key.error, of.duration_s),
        ]
        for key in of.hot_keys[:_SHOWN_KEYS]
    ]
    ranges = any(key.error for key in of.hot_keys[:_SHOWN_KEYS])
    notes = ["A range is what 4096 counters know for certain (SpaceSaving)."] if ranges else []
    return trace_part("Hottest keys", ["key", "requests", "share", "per second"], rows, notes)


def _bursts(of: TraceStatistics) -> list[DocumentPart]:
    if not of.bursts:
        return []
    rows = [
        [
            _seconds(each.window_s),
            counted(each.windows),
            number(each.mean),
            f"{each.index:.2f}",
            f"{each.peak:.1f} ×",
        ]
        for each in of.bursts
    ]
    columns = ["window", "windows", "requests in one", "index of dispersion", "largest / mean"]
    note = (
        "The index is variance / mean of the requests in a window: 1 is a Poisson process. Scales "
        "below the resolution of the times, or with fewer than 20 windows, are left out."
    )
    return [trace_part("Bursts", columns, rows, [note], partial(plots.bursts, of))]


def _over_time(of: TraceStatistics) -> list[DocumentPart]:
    if not of.timeline:
        return []
    rows: list[list[str]] = []
    for place, window in enumerate(of.timeline):
        requests = sum(window.operations.values())
        ratio = window.reads.hit_ratio
        rows.append(
            [
                f"{place * of.window_s:,.6g} s",
                f"{requests:,}",
                "–" if ratio is None else percent(ratio),
                number(window.new_keys),
                percent(window.new_keys / requests) if requests else "–",
                number(window.live_items),
                size(window.live_bytes),
            ]
        )
    columns = ["from", "requests", "hit ratio", "new keys", "of requests", "items alive",
               "bytes alive"]  # fmt: skip
    note = "New keys were not seen before in the trace: at its beginning all are new."
    drawn = partial(plots.over_time, of)
    return [trace_part("Over time", columns, rows, [note], drawn, only_page=True)]


def _rate(count: float, duration_s: float) -> str:
    return number(count / duration_s) if duration_s else "–"


def _seconds(value: float) -> str:
    for factor, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= factor:
            return f"{value / factor:g} {unit}"
    return f"{value * 1e9:g} ns"


def _whole(value: float) -> str:
    return counted(round(value))


def _estimate(of: Estimate, write: Callable[[float], str] = _whole) -> str:
    value = write(of.value)
    return f"{value} ±{100 * of.error / of.value:.1f} %" if of.error and of.value else value


def _share(of: Estimate) -> str:
    return f"{percent(of.value)} ±{100 * of.error:.2g}" if of.error else percent(of.value)
