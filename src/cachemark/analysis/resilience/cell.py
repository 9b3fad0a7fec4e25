"""A cell, one fault on one client, and its stored result."""

import shlex
from typing import Literal

import msgspec

from cachemark.analysis.resilience.figures import Figures, Phases
from cachemark.analysis.resilience.verdict import ClientVerdict, FaultFinding

Profile = Literal["common", "defaults", "tuned"]
PROFILES: tuple[Profile, ...] = ("common", "defaults", "tuned")


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
    many cells were played side by side, `disturbed` what the machine did so that the verdict can
    come from it.
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
