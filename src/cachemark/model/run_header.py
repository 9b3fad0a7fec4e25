"""The description of a run, as it is stored."""

from __future__ import annotations

import msgspec

from cachemark.model.experiment import Experiment
from cachemark.model.host_facts import HostFacts
from cachemark.model.hosts import Hosts

RUN_FORMAT = 1


class HostsOfRun(msgspec.Struct, frozen=True, kw_only=True):
    """The hosts of a run over several: what each was used for, and its facts by name."""

    plan: Hosts
    facts: dict[str, HostFacts]


class RunHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The description of a run, written once, when the run is created.

    `host` is the machine that kept the results: the only one, unless there are `hosts`.
    """

    format: int = RUN_FORMAT
    id: str
    created_at: str
    cachemark: str
    command: str
    experiment: Experiment
    host: HostFacts
    hosts: HostsOfRun | None = None
