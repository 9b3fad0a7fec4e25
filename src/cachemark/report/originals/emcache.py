"""The emcache suite in the format of its original: published figures beside the measured ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from cachemark.analysis.number_format import part
from cachemark.model.footprint import Footprint, mean
from cachemark.model.outcome import Outcome
from cachemark.model.protocol import Done
from cachemark.model.server_stats import ServerStats
from cachemark.model.suites import published_figures
from cachemark.report.model import Bar, Section

_TESTS = ("get", "set", "set-noreply", "version")
_MB = 1e6


class _Constant(msgspec.Struct, frozen=True, kw_only=True):
    who: str
    get_k: float
    set_k: float
    set_noreply_k: float
    version_k: float


class _Fill(msgspec.Struct, frozen=True, kw_only=True):
    who: str
    items_k: float
    megabytes: float


class _Memory(msgspec.Struct, frozen=True, kw_only=True):
    who: str
    user_megabytes: float
    bytes_megabytes: float
    rss_megabytes: float


class _Published(msgspec.Struct, frozen=True, kw_only=True):
    constant: list[_Constant]
    fill: list[_Fill]
    memory: list[_Memory]


def sections(outcomes: Sequence[Outcome]) -> list[Section]:
    """The original's three tables; figures are means over the valid trials."""
    known = msgspec.toml.decode(published_figures("emcache"), type=_Published)
    valid = [outcome for outcome in outcomes if outcome.verdict == "VALID" and outcome.measure]
    return [_constant(known, valid), _fill(known, valid), _memory(known, valid)]


def _constant(known: _Published, valid: list[Outcome]) -> Section:
    rows = [
        [f"published: {old.who}", *map(_k, (old.get_k, old.set_k, old.set_noreply_k)), "–",
         _k(old.version_k)]
        for old in known.constant
    ]  # fmt: skip
    for who in _server_client_names(valid, _TESTS):
        of = _windows_by_workload(valid, who)
        rows.append(
            [
                who,
                _mean_k(of("get"), _rate),
                _mean_k(of("set"), _rate),
                _mean_k(of("set-noreply"), _send_rate),
                _mean_k(of("set-noreply"), _rate),
                _mean_k(of("version"), _rate),
            ]
        )
    return Section(
        title="Set/get a constant key",
        columns=["server / client", "get", "set", "set noreply, as published",
                 "set noreply, answered", "version"],
        rows=rows,
        notes=[
            "as published: operations over the time to the last send; answered: over the time to "
            "the reply that ends them",
        ],
        unit="operations per second",
        bars=[*_published_bars(known), *_measured_bars(valid)],
    )  # fmt: skip


def _published_bars(known: _Published) -> list[Bar]:
    return [
        Bar(who=old.who, measure=measure, value=1e3 * thousands, published=True)
        for old in known.constant
        for measure, thousands in (
            ("get", old.get_k),
            ("set", old.set_k),
            ("set noreply, as published", old.set_noreply_k),
            ("version", old.version_k),
        )
    ]


def _measured_bars(valid: list[Outcome]) -> list[Bar]:
    measures = (
        ("get", "get", _rate),
        ("set", "set", _rate),
        ("set noreply, as published", "set-noreply", _send_rate),
        ("version", "version", _rate),
    )
    return [
        Bar(who=who, measure=measure, value=value, published=False)
        for who in _server_client_names(valid, _TESTS)
        for measure, workload, figure in measures
        if (value := _mean(_windows_by_workload(valid, who)(workload), figure)) is not None
    ]


def _fill(known: _Published, valid: list[Outcome]) -> Section:
    rows = [
        [f"published: {old.who}", f"{_k(old.items_k)} – {old.megabytes:.0f} MB/s", "–"]
        for old in known.fill
    ]
    for who in _server_client_names(valid, ("fill",)):
        fills = _windows_by_workload(valid, who)("fill")
        sent = _mean(fills, lambda done: _per(_keys(done), _busy_s(done)))
        right = _mean(fills, lambda done: _per(_keys(done), done.elapsed_ns / 1e9))
        sent_mb = _mean(fills, lambda done: _per(_user_bytes(done) / _MB, _busy_s(done)))
        right_mb = _mean(fills, lambda done: _per(_user_bytes(done) / _MB, done.elapsed_ns / 1e9))
        rows.append([who, _pair(sent, sent_mb), _pair(right, right_mb)])
    return Section(
        title="Fill the cache to 80 %",
        columns=["server / client", "as published (per thread, time in send)", "by wall clock"],
        rows=rows,
        notes=[
            "as published: items over the summed seconds that the callers spent in the call that "
            "sends a batch of 100; by wall clock: items of all callers, to the last answer",
        ],
    )


def _memory(known: _Published, valid: list[Outcome]) -> Section:
    rows = [
        [
            f"published: {old.who}",
            f"{old.user_megabytes:.0f} MB",
            part(_MB * old.user_megabytes, _MB * old.bytes_megabytes),
            part(_MB * old.user_megabytes, _MB * old.rss_megabytes),
            "–",
        ]
        for old in known.memory
    ]
    fills = [o for o in valid if o.trial.cell.workload == "fill" and o.server_use]
    for server in dict.fromkeys(outcome.trial.cell.server for outcome in fills):
        rows.append([server, *_efficiency([o for o in fills if o.trial.cell.server == server])])
    return Section(
        title="Memory efficiency at 80 %",
        columns=["server", "user stored", "of the server's bytes", "of its RSS", "of RSS growth"],
        rows=rows,
        notes=[
            "user stored: key and value bytes of the fill; RSS growth leaves out what the empty "
            "server took",
        ],
    )


def _efficiency(fills: list[Outcome]) -> list[str]:
    of = mean([_footprint(fill) for fill in fills])
    wholes = (of.reported_bytes, of.rss_bytes, of.growth_bytes)
    return [f"{of.user_bytes / _MB:.0f} MB", *[part(of.user_bytes, whole) for whole in wholes]]


def _footprint(fill: Outcome) -> Footprint:
    use = fill.server_use
    return Footprint(
        user_bytes=_user_bytes(fill.measure) if fill.measure else 0,
        reported_bytes=ServerStats(fill.stats_after).number("bytes"),
        rss_bytes=use.rss_after_bytes if use else None,
        rss_empty_bytes=use.rss_before_bytes if use else None,
    )


def _server_client_names(valid: list[Outcome], workloads: Sequence[str]) -> list[str]:
    """Server and client of every row, in the order of the experiment."""
    chosen = [o.trial.cell for o in valid if o.trial.cell.workload in workloads]
    names = sorted({(cell.server, cell.client) for cell in chosen})
    return [f"{server} / {client}" for server, client in names]


def _windows_by_workload(valid: list[Outcome], who: str) -> Callable[[str], list[Done]]:
    def windows(workload: str) -> list[Done]:
        return [
            outcome.measure
            for outcome in valid
            if outcome.measure
            and outcome.trial.cell.workload == workload
            and f"{outcome.trial.cell.server} / {outcome.trial.cell.client}" == who
        ]

    return windows


def _rate(done: Done) -> float | None:
    return _per(sum(op.ok for op in done.operations.values()), done.elapsed_ns / 1e9)


def _send_rate(done: Done) -> float | None:
    return _per(sum(op.ok for op in done.operations.values()), done.send_elapsed_ns / 1e9)


def _per(count: float, seconds: float) -> float | None:
    """None if a worker does not report this time."""
    return count / seconds if seconds > 0 else None


def _keys(done: Done) -> int:
    return sum(op.keys for op in done.operations.values())


def _user_bytes(done: Done) -> int:
    return sum(op.key_bytes + op.value_bytes for op in done.operations.values())


def _busy_s(done: Done) -> float:
    return sum(op.busy_ns for op in done.operations.values()) / 1e9


def _mean(windows: list[Done], figure: Callable[[Done], float | None]) -> float | None:
    figures = [figure(window) for window in windows]
    known = [value for value in figures if value is not None]
    return sum(known) / len(known) if known and len(known) == len(figures) else None


def _mean_k(windows: list[Done], figure: Callable[[Done], float | None]) -> str:
    mean = _mean(windows, figure)
    return "–" if mean is None else _k(mean / 1e3)


def _pair(items: float | None, megabytes: float | None) -> str:
    if items is None or megabytes is None:
        return "–"
    return f"{_k(items / 1e3)} – {megabytes:.0f} MB/s"


def _k(thousands: float) -> str:
    return f"{thousands:.1f} k/s" if thousands < 10 else f"{thousands:.0f} k/s"
