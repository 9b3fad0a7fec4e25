"""Before anything is timed: are the servers fit for it, and are the levels what they say?

It is looked at once for each run, kept with it, and shown in its report. What fails is not timed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from cachemark.checks.probe import examine
from cachemark.endpoints.clients import ClientSpec
from cachemark.endpoints.servers import ServerSpec
from cachemark.model.errors import TrialError, WireError
from cachemark.model.experiment import Experiment
from cachemark.model.outcome import Cell
from cachemark.model.plan import load_of, plan, workload_of
from cachemark.runs.audit.claims import Claim, claims
from cachemark.runs.audit.fitness import held_bytes, idle, objection
from cachemark.runs.audit.levels import Scene, prove
from cachemark.runs.audit.value import Audit, Caution, Fitness, Level, of_server
from cachemark.runs.tapes import TapeShelf

__all__ = ["Audit", "Auditor", "Caution", "Fitness", "Level", "objection"]


class Auditor:
    """Looks at what an experiment names, and says what it means for each of its cells."""

    def __init__(
        self,
        experiment: Experiment,
        clients: Mapping[str, ClientSpec],
        servers: Mapping[str, ServerSpec],
    ) -> None:
        self._experiment = experiment
        self._clients = clients
        self._servers = servers
        self._claims = claims(experiment, clients, servers)

    def look(self, shelf: TapeShelf, tell: Callable[[str], None]) -> Audit:
        """Look at everything; `tell` hears what is being looked at."""
        fitnesses: list[Fitness] = []
        for text in self._experiment.servers:
            tell(f"is {text} fit to be timed?")
            fitnesses.append(self._fitness(self._servers[text]))
        audit = Audit(servers=fitnesses)
        levels: list[Level] = []
        for claim in self._claims:
            tell(f"{claim.factor} {claim.level} of {claim.subject}: is it?")
            with suppress(WireError):
                levels.append(self._level(claim, audit, shelf))
        return Audit(servers=fitnesses, levels=levels)

    def caution(self, audit: Audit, cell: Cell) -> Caution:
        """What an audit means for a cell."""
        answers = {(one.factor, one.level, one.subject): one for one in audit.levels}
        void = ""
        for claim in self._claims:
            level = answers.get((claim.factor, claim.level, claim.subject))
            if cell in claim.cells and level is not None and level.answer == "void":
                void = f"void: {claim.factor} {claim.level} of {claim.subject}: {level.evidence}"
                break
        fitness = next((one for one in audit.servers if one.server == cell.server), None)
        return of_server(fitness or Fitness(server=cell.server), void)

    def _fitness(self, spec: ServerSpec) -> Fitness:
        try:
            found = examine(
                spec,
                without=idle(self._experiment),
                held_bytes=held_bytes(self._experiment),
            )
        except TrialError as error:
            return Fitness(server=spec.text, unseen=error.text)
        unlike = [finding for finding in found if finding.fit is not True]
        return Fitness(server=spec.text, checks=len(found), findings=unlike)

    def _level(self, claim: Claim, audit: Audit, shelf: TapeShelf) -> Level:
        cell = self._best(claim, audit)
        scene = Scene(
            client=self._clients[cell.client],
            server=self._servers[cell.server],
            workload=workload_of(self._experiment, cell),
            load=load_of(self._experiment, cell),
            timing=self._experiment.timing,
            shelf=shelf,
            tape_seed=plan(self._experiment)[0].tape_seed,
            quirks=self.caution(audit, cell).quirks,
        )
        proof = prove(claim, scene)
        return Level(
            factor=claim.factor,
            level=claim.level,
            subject=claim.subject,
            answer=proof.answer,
            evidence=proof.evidence,
        )

    def _best(self, claim: Claim, audit: Audit) -> Cell:
        """A cell that is going to be timed, where there is one."""
        for cell in claim.cells:
            load = load_of(self._experiment, cell)
            wire = "" if load.wire == "own" else load.wire
            workload = workload_of(self._experiment, cell)
            if not objection(self.caution(audit, cell), workload, load, wire):
                return cell
        return claim.cells[0]
