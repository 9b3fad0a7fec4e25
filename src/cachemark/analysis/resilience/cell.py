"""A run of `resilience`: its plan, its cells (one fault on one client), and their results."""

import shlex
from typing import Literal

import msgspec

from cachemark.analysis.resilience.figures import Figures, Phases
from cachemark.analysis.resilience.verdict import ClientVerdict, FaultFinding
from cachemark.model.run_header import HostFacts

Profile = Literal["common", "defaults", "tuned"]
PROFILES: tuple[Profile, ...] = ("common", "defaults", "tuned")
RESILIENCE_FORMAT = 1
# The callers of a cell together, by their schedule.
CALLS_PER_S = 400


class CellName(msgspec.Struct, frozen=True, kw_only=True):
    """A client as it is typed, its profile, a fault, and the number of the sitting from 1."""

    client: str
    profile: Profile
    fault: str
    sitting: int

    @property
    def replay(self) -> str:
        """The command that plays this cell again."""
        chosen = ["--faults", self.fault, "--profile", self.profile, "--sittings", "1"]
        return shlex.join(["cachemark", "resilience", self.client, *chosen])


class WrongValue(msgspec.Struct, frozen=True, kw_only=True):
    """A wrong value: the key that was asked for, whose value it is, and its bytes, base64."""

    key: str
    what: str
    value: str


class CellOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a cell.

    `unsupported` says why a client cannot be played, `not_applicable` why the fault cannot affect
    it, and `failed` why the cell could not be judged. All are empty if the cell has a verdict.
    `timeline` counts the calls that ended in each slice of 100 ms, by their result. `jobs` is how
    many cells were played side by side, `disturbed` how the machine may have caused the verdict.
    """

    name: CellName
    library: str = ""
    library_version: str = ""
    runtime: str = ""
    wire: str = ""
    server: str = ""
    verdict: ClientVerdict | None = None
    findings: list[FaultFinding] = []
    figures: Figures | None = None
    phases: Phases | None = None
    timeline: list[dict[str, int]] = []
    wrong_values: list[WrongValue] = []
    unsupported: str = ""
    not_applicable: str = ""
    failed: str = ""
    jobs: int = 1
    disturbed: str = ""


class ResiliencePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The grid of a run: every fault on every client with every profile, in each sitting."""

    clients: list[str]
    profiles: list[Profile]
    faults: list[str]
    sittings: int

    def cells(self) -> list[CellName]:
        """The cells in the order in which they are played."""
        return [
            CellName(client=client, profile=profile, fault=fault, sitting=sitting)
            for sitting in range(1, self.sittings + 1)
            for client in self.clients
            for profile in self.profiles
            for fault in self.faults
        ]


class ResilienceHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The description of a run, written once. `name` is what its user calls it."""

    format: int = RESILIENCE_FORMAT
    id: str
    created_at: str
    cachemark: str
    plan: ResiliencePlan
    host: HostFacts
    name: str = ""
