"""The setting of a trial: the parties, the work, the tapes, the CPUs."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import msgspec

from cachemark.endpoints.clients import ClientSpec
from cachemark.endpoints.servers import RunningServer, ServerSpec
from cachemark.model.audit import Restrictions
from cachemark.model.experiment import Load, NoisePolicy, Timing, Workload
from cachemark.model.outcome import Trial
from cachemark.runs.tapes import Tape

# Starts a target for the client that is no server of an experiment.
TrialTarget = Callable[[], AbstractContextManager[RunningServer]]


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """All that a trial needs to know.

    `generators` make the load of the cell, where the client itself only measures: it then plays
    `load`, which is low. `operation_ns`: what an earlier sitting knows of `Rounds.operation_ns`.
    """

    run: str
    trial: Trial
    client: ClientSpec
    server: ServerSpec
    workload: Workload
    load: Load
    timing: Timing
    tape: Tape
    server_cpus: str
    worker_cpus: str
    restrictions: Restrictions = Restrictions()
    noise: NoisePolicy = "auto"
    target: TrialTarget | None = None
    awake_pid: int | None = None
    slices: bool = False
    operation_ns: int = 0
    generators: "Setting | None" = None

    @property
    def cell_load(self) -> Load:
        """The load as the experiment has it."""
        return self.generators.load if self.generators else self.load
