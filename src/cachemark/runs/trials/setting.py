"""The setting of a trial: the parties, the work, the tapes, the CPUs."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import msgspec

from cachemark.endpoints.clients import ClientSpec
from cachemark.endpoints.servers import RunningServer, ServerSpec
from cachemark.model.audit import Restrictions
from cachemark.model.experiment import Load, NoisePolicy, Timing, Workload
from cachemark.model.outcome import Trial
from cachemark.runs.tapes import Tape

# Starts a target for the client that is no server of an experiment.
TrialTarget = Callable[[], AbstractContextManager[RunningServer]]


class TrialWork(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a trial's setting that is the same on every host.

    `operation_ns`: what an earlier sitting knows of `Rounds.operation_ns`.
    """

    run: str
    trial: Trial
    workload: Workload
    load: Load
    timing: Timing
    restrictions: Restrictions = Restrictions()
    noise: NoisePolicy = "auto"
    operation_ns: int = 0

    def work(self) -> dict[str, Any]:
        """These fields, for another value that has them."""
        return {name: getattr(self, name) for name in TrialWork.__struct_fields__}


class Setting(TrialWork, frozen=True, kw_only=True):
    """All that a trial needs to know.

    `generators` make the load of the cell, where the client itself only measures: it then plays
    `load`, which is low.
    """

    client: ClientSpec
    server: ServerSpec
    tape: Tape
    server_cpus: str
    worker_cpus: str
    target: TrialTarget | None = None
    awake_pid: int | None = None
    slices: bool = False
    generators: "Setting | None" = None

    @property
    def cell_load(self) -> Load:
        """The load as the experiment has it."""
        return self.generators.load if self.generators else self.load
