"""The checks before anything is timed: the behaviour of servers, and the claimed levels.

Each run is audited once. The result is stored with the run and shown in its report. Trials on a
server or a level that fails are skipped.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress

import msgspec

from cachemark.endpoints.clients import ClientSpec
from cachemark.endpoints.probe import probe_new_server
from cachemark.endpoints.servers import ServerSpec
from cachemark.model.audit import Audit, Fitness, Level, Restrictions, of_server
from cachemark.model.errors import TrialError, UnsupportedWireError
from cachemark.model.outcome import Cell
from cachemark.model.plan import Plan, Skipped
from cachemark.runs.audit.claims import Claim, claims
from cachemark.runs.audit.fitness import skip_reason, stored_bytes, unused_wires
from cachemark.runs.audit.levels import Scene, prove
from cachemark.runs.tapes import TapeCache


class Auditor:
    """Checks the servers and levels of a plan, and gives the reasons that rule out each cell."""

    def __init__(
        self, plan: Plan, clients: Mapping[str, ClientSpec], servers: Mapping[str, ServerSpec]
    ) -> None:
        self.plan = plan
        self._experiment = plan.experiment
        self._clients = clients
        self._servers = servers
        self._claims = claims(plan, clients, servers)

    def run(self, tapes: TapeCache, announce: Callable[[str], None]) -> Audit:
        """Check every server and every claimed level; `announce` gets the name of each check."""
        fitnesses: list[Fitness] = []
        for text in self._played_servers():
            announce(f"checks {text}")
            fitnesses.append(self._fitness(self._servers[text]))
        audit = Audit(servers=fitnesses)
        levels: list[Level] = []
        for claim in self._claims:
            announce(f"checks {claim.factor} {claim.level} of {claim.subject}")
            with suppress(UnsupportedWireError):
                levels.append(self._level(claim, audit, tapes))
        audit = Audit(servers=fitnesses, levels=levels)
        skipped = [*self.plan.skipped, *self._refused(audit)]
        return msgspec.structs.replace(audit, skipped=skipped)

    def _refused(self, audit: Audit) -> list[Skipped]:
        """The cells that the audit rules out whatever wire their client chooses."""
        skipped: list[Skipped] = []
        for cell in self.plan.playable:
            if reason := self._skip_reason(audit, cell):
                skipped.append(Skipped(cell=cell, reason=reason))
        return skipped

    def _skip_reason(self, audit: Audit, cell: Cell) -> str:
        restrictions = self.restrictions(audit, cell)
        return skip_reason(restrictions, self.plan.workload(cell), self.plan.load(cell))

    def restrictions(self, audit: Audit, cell: Cell) -> Restrictions:
        """The reasons of an audit against a cell."""
        answers = {(one.factor, one.level, one.subject): one for one in audit.levels}
        void = ""
        for claim in self._claims:
            level = answers.get((claim.factor, claim.level, claim.subject))
            if cell in claim.cells and level is not None and level.answer == "void":
                void = f"void: {claim.factor} {claim.level} of {claim.subject}: {level.evidence}"
                break
        fitness = next((one for one in audit.servers if one.server == cell.server), None)
        return of_server(fitness or Fitness(server=cell.server), void)

    def _played_servers(self) -> list[str]:
        played = {trial.cell.server for trial in self.plan.trials}
        return [text for text in self._experiment.servers if text in played]

    def _fitness(self, spec: ServerSpec) -> Fitness:
        try:
            findings = probe_new_server(
                spec, skip=unused_wires(self._experiment), held_bytes=stored_bytes(self._experiment)
            )
        except TrialError as error:
            return Fitness(server=spec.text, unseen=error.text)
        unlike = [finding for finding in findings if finding.fit is not True]
        return Fitness(server=spec.text, checks=len(findings), findings=unlike)

    def _level(self, claim: Claim, audit: Audit, tapes: TapeCache) -> Level:
        cell = self._best(claim, audit)
        scene = Scene(
            client=self._clients[cell.client],
            server=self._servers[cell.server],
            workload=self.plan.workload(cell),
            load=self.plan.load(cell),
            timing=self._experiment.timing,
            tapes=tapes,
            tape_seed=self.plan.trials[0].tape_seed,
            quirks=self.restrictions(audit, cell).quirks,
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
        """A cell that is not skipped, if there is one."""
        played = (cell for cell in claim.cells if not self._skip_reason(audit, cell))
        return next(played, claim.cells[0])
