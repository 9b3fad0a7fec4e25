"""The description of a run and of the machine at its begin, as it is stored."""

import msgspec

from cachemark.model.errors import UsageError
from cachemark.model.experiment import Experiment
from cachemark.model.hosts import Hosts

RUN_FORMAT = 1
_MAX_NAME = 80


class HostsOfRun(msgspec.Struct, frozen=True, kw_only=True):
    """The hosts of a run over several: the roles of each, and its facts by name."""

    plan: Hosts
    facts: "dict[str, HostFacts]"


class RunHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The description of a run, written once, when the run is created.

    `host` is the machine that kept the results: the only one, unless there are `hosts`.
    `name` is the user's name for the run; empty without one.
    """

    format: int = RUN_FORMAT
    id: str
    created_at: str
    cachemark: str
    command: str
    experiment: Experiment
    host: "HostFacts"
    hosts: HostsOfRun | None = None
    name: str = ""

    @property
    def title(self) -> str:
        """The question, after the run's own name if it has one."""
        question = self.experiment.question
        return f"{self.name}: {question}" if self.name else question


def own_name(typed: str) -> str:
    """A run's name as a user typed it, checked: one short line. Raises UsageError."""
    name = typed.strip()
    if len(name) > _MAX_NAME or not name.isprintable():
        raise UsageError(
            f"--name {typed[:_MAX_NAME]!r}: not one line of at most {_MAX_NAME} characters",
            "such as --name 'after the upgrade'",
        )
    return name


class HostFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The machine at the time of a run. A field that cannot be read is empty."""

    name: str
    cpu_model: str
    cpus: int
    usable_cpus: list[int]
    hypervisor: bool
    kernel: str
    system: str
    memory_bytes: int
    governor: str
    clocksource: str
    load_1min: float
    python: str
    cachemark: str
    tools: dict[str, str]
    cores: list[list[int]] = []
    turbo: str = ""
    mitigations: dict[str, str] = {}
    swap_used_bytes: int = 0
    engine: str = ""
