"""Finds the cells that this machine cannot play, before anything is timed.

A missing server or library is one line with its remedy. Its cells are no trials: they do not count
in the number of trials, and take no time.
"""

from collections.abc import Mapping

import msgspec

from cachemark.endpoints import servers
from cachemark.endpoints.capabilities import select_wire, unclaimed
from cachemark.endpoints.client_readiness import Readiness, hello_of
from cachemark.endpoints.clients import ClientSpec
from cachemark.endpoints.servers import ServerSpec
from cachemark.model.errors import TrialError, UnsupportedError
from cachemark.model.experiment import Timing
from cachemark.model.outcome import Cell
from cachemark.model.plan import Plan, Skipped, measuring_load
from cachemark.model.protocol import Prepare, Ready
from cachemark.runs.trials.callers import callers_of, demand_of

Reason = tuple[str, str]


class Preflight:
    """Asks each server and each client of a plan whether it is there, once.

    With `recorded` answers of clients, it starts none.
    """

    def __init__(
        self,
        clients: Mapping[str, ClientSpec],
        server_specs: Mapping[str, ServerSpec],
        recorded: Mapping[str, Readiness] | None = None,
    ) -> None:
        self._clients, self._servers, self._recorded = clients, server_specs, recorded
        self._answers: dict[str, Ready | Reason | None] = {}

    def skipped(self, plan: Plan) -> list[Skipped]:
        """The cells of a plan that cannot be played, each with the reason."""
        cells: list[Skipped] = []
        for cell in plan.cells:
            why = self._why(plan, cell)
            if why:
                cells.append(Skipped(cell=cell, reason=why[0], remedy=why[1]))
        return cells

    def _why(self, plan: Plan, cell: Cell) -> Reason | None:
        if missing := servers.missing(self._servers[cell.server]):
            own = missing.reason.startswith(f"{cell.server} ")
            text = missing.reason if own else f"{cell.server} cannot be started: {missing.reason}"
            return text, missing.remedy
        client = self._clients[cell.client]
        ready = self._hello(client, plan.experiment.timing)
        if not isinstance(ready, Ready):
            return ready
        return _unplayable(client, plan, cell, ready)

    def _hello(self, client: ClientSpec, timing: Timing) -> Ready | Reason | None:
        """The client's answer to `hello`, or why there is none; None if only a trial can say."""
        name = client.client.id
        if name not in self._answers:
            self._answers[name] = self._answer(client, timing)
        return self._answers[name]

    def _answer(self, client: ClientSpec, timing: Timing) -> Ready | Reason | None:
        if self._recorded is None:
            return ask(client, timing.ready_ms / 1e3)
        found = self._recorded.get(client.client.id)
        return found and (found.ready or (found.state, ""))


def ask(client: ClientSpec, ready_s: float) -> Ready | Reason | None:
    """The client's answer to `hello`, or why there is none; None if only a trial can say."""
    try:
        return hello_of(client.client, ready_s)
    except UnsupportedError as error:
        return error.text, error.remedy
    except TrialError:
        # A failing worker is no missing library: its trial shows the failure.
        return None


def _unplayable(client: ClientSpec, plan: Plan, cell: Cell, ready: Ready) -> Reason | None:
    workload, load = plan.workload(cell), measuring_load(plan.load(cell))
    if plan.experiment.search:  # the steps after the first are open loops
        load = msgspec.structs.replace(load, schedule="poisson")
    try:
        wire = select_wire(load, ready)
    except UnsupportedError as error:
        # The reason names the client, since several clients may have the same one.
        return f"{client.client.id}: {error.text}", error.remedy
    callers = callers_of(load, client.client.concurrency, ready)
    request = Prepare(
        servers=[],
        wire=wire,
        threads=callers.threads,
        connections=callers.connections,
        depth=load.depth,
        refill=load.refill,
        tape="",
    )
    lacking = unclaimed(demand_of(request, workload, load, slices=bool(plan.sittings)), ready)
    return (lacking, "") if lacking else None
