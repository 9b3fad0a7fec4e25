"""The run that answers what two stored runs cannot: both sides again, in turns. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from cachemark.model.client_name import parse_client_name
from cachemark.model.experiment import Experiment, Load, Workload
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.plan import NO_SERVER
from cachemark.report.compare.model import ComparisonReport

_Named = TypeVar("_Named", Workload, Load)
# The version of each client's library in a run.
Versions = Mapping[str, str]


def library_versions(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """The version of each client's library that a run had, by the client's name."""
    return {
        outcome.trial.cell.client: outcome.worker.library_version
        for outcome in outcomes
        if outcome.worker is not None
    }


def played_again(
    compared: ComparisonReport,
    experiments: tuple[Experiment, Experiment],
    versions: tuple[Versions, Versions],
    has_versions: Callable[[str], bool],
) -> Experiment | None:
    """An experiment of both sides, whose cells take turns; None if that would answer nothing.

    `experiments` and `versions`: the baseline's, then the other run's. A client that is the same on
    both sides is played with both versions of its library, where `has_versions` says that its
    version can be chosen.
    """
    pairs = [(row.baseline, row.other) for row in compared.rows if row.is_unanswered]
    if not any(_differ(pair, versions, has_versions) for pair in pairs):
        return None
    clients = _unique(name for pair in pairs for name in _clients(pair, versions, has_versions))
    cells = [cell for pair in pairs for cell in pair]
    servers = _unique(cell.server for cell in cells if cell.server != NO_SERVER)
    inside = {name for of in experiments for name in of.in_process}
    base = experiments[0]
    shared = [name for name in clients if name not in inside]
    return msgspec.structs.replace(
        base,
        name="in-turns",
        question="Which is faster, if both are played in turns?",
        clients=shared,
        in_process=[name for name in clients if name in inside],
        servers=servers,
        workloads=_named([w for of in experiments for w in of.workloads], cells, "workload"),
        loads=_named([load for of in experiments for load in of.loads], cells, "load"),
        rank="servers" if len(clients) == 1 else "clients",
        twice=shared[0] if shared else "",
        analysis="",
        design="auto",
        quick=None,
    )  # fmt: skip


def _differ(
    pair: tuple[Cell, Cell], versions: tuple[Versions, Versions], has: Callable[[str], bool]
) -> bool:
    """Whether one run can have both cells of a pair, as they differ by what a run can vary."""
    before, after = pair
    return before != after or len(_clients(pair, versions, has)) > 1


def _clients(
    pair: tuple[Cell, Cell], versions: tuple[Versions, Versions], has: Callable[[str], bool]
) -> list[str]:
    """The client of each cell, or the same one with the library's version of each."""
    before, after = (cell.client for cell in pair)
    old, new = (of.get(name, "") for of, name in zip(versions, (before, after), strict=True))
    named = parse_client_name(before)
    plain = not (named.is_command or named.version or named.own_settings or named.options)
    if before == after and plain and old and new and old != new and has(before):
        return [f"{before}@{old}", f"{before}@{new}"]
    return _unique([before, after])


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _named(known: Sequence[_Named], cells: Sequence[Cell], field: str) -> list[_Named]:
    """The workloads or loads of the cells, each once."""
    by_name = {one.name: one for one in reversed(known)}
    return [by_name[name] for name in _unique(getattr(cell, field) for cell in cells)]
