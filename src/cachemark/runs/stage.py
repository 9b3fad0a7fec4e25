"""The place that plays a run: this machine, or others (`agents/`); and the run's observers."""

from collections.abc import Callable
from typing import Protocol

import msgspec

from cachemark.endpoints.client_versions import with_version
from cachemark.endpoints.clients import ClientSpec, parse_client, registry
from cachemark.endpoints.servers import ServerSpec, parse_spec
from cachemark.host import process
from cachemark.model.audit import Audit
from cachemark.model.client_name import without_repeat
from cachemark.model.experiment import Experiment, Load
from cachemark.model.outcome import Outcome, Trial
from cachemark.model.plan import NO_SERVER, Plan, Sitting, Skipped, client_labels
from cachemark.runs.audit import Auditor
from cachemark.runs.planning.preflight import Preflight
from cachemark.runs.sittings.sitting import SittingDisplay, SittingSetting, play_sitting
from cachemark.runs.tapes import TapeCache
from cachemark.runs.trials.setting import Setting
from cachemark.runs.trials.trial import run_trial

Say = Callable[[str], None]


class Parties(msgspec.Struct, frozen=True, kw_only=True):
    """The clients and servers of an experiment by the text that names them."""

    clients: dict[str, ClientSpec]
    servers: dict[str, ServerSpec]
    engine: str


def parties_of(experiment: Experiment, say: Say) -> Parties:
    """Everything the experiment names, known before anything runs. Raises UsageError."""
    engine = process.binary_path()
    known = registry(engine)
    generators = {load.measure.generator for load in experiment.loads if load.measure}
    clients = [*experiment.clients, *experiment.in_process, *generators]
    named = {text: parse_client(text, known) for text in clients}
    servers = {text: parse_spec(text) for text in [*experiment.servers, NO_SERVER]}
    ready = {text: with_version(spec, say) for text, spec in named.items()}
    return Parties(
        clients={
            text: ready[without_repeat(text)]
            for text in [*client_labels(experiment), *experiment.in_process, *generators]
        },
        servers=servers,
        engine=engine,
    )


class Display:
    """Receives the reports of a run while it is played; this one shows nothing."""

    def planned(self, plan: Plan) -> None:
        """The plan is known; its skipped cells include those that cannot be played here."""

    def auditing(self, what: str) -> None:
        """Something is being checked before the first trial."""
        self.doing(what)

    def refused(self, plan: Plan) -> None:
        """The audit has ruled out some cells; the plan has them among its skipped ones."""

    def begins(self, trial: Trial, number: int, total: int, *, is_replay: bool = False) -> None:
        """Trial `number` of `total` begins; a replay repeats a trial that the machine disturbed."""

    def ops(self, ops: int) -> None:
        """The current phase has done `ops` operations."""

    def ends(self, outcome: Outcome) -> None:
        """A trial has ended and its outcome is on disk."""

    def sitting(self, sitting: Sitting, number: int, total: int) -> None:
        """Sitting `number` of at most `total` begins."""

    def doing(self, what: str) -> None:
        """A step of the sitting begins."""

    def played(self, part: float) -> None:
        """This part of the sitting's slices has been played."""

    def sitting_ended(self) -> None:
        """A sitting has ended and its outcomes are on disk."""

    def answers(self, outcomes: list[Outcome]) -> None:
        """Every cell has had a sitting more; these are all outcomes of the run so far."""


class Stage(Protocol):
    """Checks and plays the parts of a run, with processes of its own."""

    def hosts_of(self, load: Load) -> int:
        """The number of hosts that make a load."""
        ...

    def unplayable(self, plan: Plan, parties: Parties) -> list[Skipped]:
        """The cells that it is known not to play, before anything is timed."""
        ...

    def audit(self, auditor: Auditor, tapes: TapeCache, announce: Say) -> Audit:
        """Check servers and levels."""
        ...

    def run_trial(self, setting: Setting, progress: Callable[[int], None]) -> Outcome:
        """Run one trial. Raises TrialError if none can be run any more."""
        ...

    def play_sitting(self, setting: SittingSetting, display: SittingDisplay) -> list[Outcome]:
        """Play one sitting. Raises TrialError if none can be played any more."""
        ...


class ThisHost:
    """The stage on this machine."""

    def hosts_of(self, load: Load) -> int:
        """One."""
        del load
        return 1

    def unplayable(self, plan: Plan, parties: Parties) -> list[Skipped]:
        """The cells whose client or server is not on this machine."""
        return Preflight(parties.clients, parties.servers).skipped(plan)

    def audit(self, auditor: Auditor, tapes: TapeCache, announce: Say) -> Audit:
        """Check servers and levels."""
        return auditor.run(tapes, announce)

    def run_trial(self, setting: Setting, progress: Callable[[int], None]) -> Outcome:
        """Run one trial."""
        return run_trial(setting, progress)

    def play_sitting(self, setting: SittingSetting, display: SittingDisplay) -> list[Outcome]:
        """Play one sitting."""
        return play_sitting(setting, display)
