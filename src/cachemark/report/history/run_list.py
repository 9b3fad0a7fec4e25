"""The runs of a store, searched and filtered: what was played in each, and with which verdicts."""

import sqlite3

import msgspec

from cachemark.model.client_name import without_repeat
from cachemark.model.outcome import Cell
from cachemark.model.plan import is_repeat
from cachemark.report.cells import cell_title
from cachemark.report.history.index import RunIndex
from cachemark.report.history.model import RunRow
from cachemark.report.history.query import HistoryQuery, query_history

# Stands beside the verdicts and states of trials.
UNREADABLE = "unreadable"


class RunFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions for a listed run; an empty text is no condition. `text` may be in any name."""

    text: str = ""
    suite: str = ""
    client: str = ""
    server: str = ""
    host: str = ""
    verdict: str = ""


class ListedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run of the list, and the names of what was played in it.

    The workloads of a run of `resilience` are its faults.
    """

    run: RunRow
    clients: list[str]
    servers: list[str]
    workloads: list[str]
    verdicts: dict[str, int]


def list_runs(index: RunIndex) -> list[ListedRun]:
    """All runs of the store, latest first. A run that cannot be read is in the list too."""
    played: dict[str, list[sqlite3.Row]] = {}
    sql = """
        SELECT folder, client, server, workload, verdict, count(*) AS trials FROM trial
        GROUP BY 1, 2, 3, 4, 5
        UNION ALL SELECT folder, client, '', fault, verdict, count(*) FROM fault
        GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
    """
    for row in index.rows(sql):
        played.setdefault(row["folder"], []).append(row)
    runs = query_history(index, HistoryQuery()).runs
    return [_listed(run, played.get(run.folder, [])) for run in reversed(runs)]


def cell_names(index: RunIndex, folder: str) -> list[str]:
    """Names in the cells of a run: clients, servers and loads, then the titles of the cells."""
    sql = """
        SELECT DISTINCT client, server, workload, load FROM trial
        WHERE folder = ? ORDER BY workload, load, server, client
    """
    played = (Cell(**dict(row)) for row in index.rows(sql, (folder,)))
    cells = [cell for cell in played if not is_repeat(cell)]
    parts = [getattr(cell, field) for field in ("client", "server", "load") for cell in cells]
    return list(dict.fromkeys([*parts, *map(cell_title, cells)]))


def _listed(run: RunRow, rows: list[sqlite3.Row]) -> ListedRun:
    verdicts: dict[str, int] = {UNREADABLE: 1} if run.problem else {}
    for row in rows:
        verdicts[row["verdict"]] = verdicts.get(row["verdict"], 0) + row["trials"]
    return ListedRun(
        run=run,
        clients=list(dict.fromkeys(without_repeat(row["client"]) for row in rows)),
        servers=list(dict.fromkeys(row["server"] for row in rows if row["server"])),
        workloads=list(dict.fromkeys(row["workload"] for row in rows)),
        verdicts=verdicts,
    )


def matches(listed: ListedRun, wanted: RunFilter) -> bool:
    """Whether a run has everything that a filter asks for."""
    run = listed.run
    names = [run.folder, run.name, run.experiment, run.host, run.problem, run.answer]
    names += [*listed.clients, *listed.servers, *listed.workloads]
    return (
        wanted.text.lower() in "\n".join(names).lower()
        and wanted.suite in ("", run.experiment)
        and wanted.host in ("", run.host)
        and (not wanted.client or wanted.client in listed.clients)
        and (not wanted.server or wanted.server in listed.servers)
        and (not wanted.verdict or wanted.verdict in listed.verdicts)
    )
