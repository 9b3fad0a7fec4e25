"""Cells of clients and faults in words: the matrix of a run, worst first. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from cachemark.analysis.resilience.answers import ERRORS
from cachemark.analysis.resilience.cell import CALLS_PER_S, CellOutcome, Profile
from cachemark.analysis.resilience.figures import FEWEST_CALLS
from cachemark.analysis.resilience.verdict import VERDICTS, ClientVerdict, worst
from cachemark.report.document import Table, TableColumn, Toned

_STYLES = {"unsafe": "bold red", "hangs": "red", "degraded": "yellow", "safe": "green"}


class MatrixCell(msgspec.Struct, frozen=True, kw_only=True):
    """One client with one fault, over all sittings.

    `verdict` is the worst; None if no sitting has one, and then `note` says why. `times` is how
    many of the judged sittings had that verdict.
    """

    fault: str
    verdict: ClientVerdict | None
    times: int
    sittings: int
    note: str
    outcomes: list[CellOutcome]

    @property
    def text(self) -> str:
        """The verdict in words, and the shares of the calls that failed and that waited.

        It says so if sittings differ, or if the verdict can come from the machine.
        """
        if self.verdict is None:
            return self.note or "–"
        differs = f" {self.times}/{self.sittings}" if self.times < self.sittings else ""
        mine = [one for one in self.outcomes if one.verdict == self.verdict]
        doubt = " (disturbed)" if all(one.disturbed for one in mine) else ""
        return f"{self.verdict}{differs}{doubt}{self._calls}"

    @property
    def _calls(self) -> str:
        """The calls of all sittings that failed in the fault, and most of them if they waited."""
        played = [(one.figures, one.phases) for one in self.outcomes if one.figures and one.phases]
        ended = sum((Counter(figures.during) for figures, _ in played), Counter())
        due = sum(of.fault_end_ns - of.fault_ns for _, of in played) / 1e9 * CALLS_PER_S
        failed, total = sum(ended[answer] for answer in ERRORS), ended.total()
        few = total < FEWEST_CALLS
        part = f"{failed} of {total}" if few else f"{100 * failed / total:.3g} % of"
        waited = f", {100 * (1 - total / due):.3g} % of due calls waited" if 2 * total < due else ""
        return (f", {part} calls failed" if failed else "") + waited


class MatrixRow(msgspec.Struct, frozen=True, kw_only=True):
    """One client with one profile, and its cells in the order of the faults."""

    client: str
    profile: Profile
    library: str
    library_version: str
    cells: list[MatrixCell]
    unsupported: str

    @property
    def counts(self) -> list[int]:
        """How many faults have each verdict, worst first."""
        return [sum(cell.verdict == verdict for cell in self.cells) for verdict in VERDICTS]


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The worst verdict of some cells, and in words how many have it."""

    verdict: ClientVerdict | None
    text: str


def summary_of(row: MatrixRow, faults: Sequence[str]) -> Summary:
    """A row's cells of some faults in short."""
    cells = [cell for cell in row.cells if cell.fault in faults]
    worst_verdict = worst([cell.verdict for cell in cells if cell.verdict])
    if worst_verdict is None:
        return Summary(verdict=None, text="n/a" if any(cell.note for cell in cells) else "–")
    times = sum(cell.verdict == worst_verdict for cell in cells)
    text = worst_verdict if worst_verdict == "safe" else f"{times} {worst_verdict}"
    return Summary(verdict=worst_verdict, text=text)


def matrix(outcomes: Sequence[CellOutcome], faults: Sequence[str]) -> list[MatrixRow]:
    """The rows: clients that can be played, worst first, then those that cannot."""
    players = dict.fromkeys(_player(one) for one in outcomes)
    rows = [
        _row(player, [o for o in outcomes if _player(o) == player], faults) for player in players
    ]
    return sorted(rows, key=lambda row: (bool(row.unsupported), [-n for n in row.counts]))


def counted_verdicts(outcomes: Sequence[CellOutcome]) -> str:
    """How many of the judged cells have each verdict, worst first: `1 unsafe, 11 safe`.

    A cell is a client with a profile and a fault: the worst of its sittings. Empty without any.
    """
    cells: dict[tuple[str, Profile, str], list[ClientVerdict]] = {}
    for one in outcomes:
        if one.verdict is not None:
            cells.setdefault((*_player(one), one.name.fault), []).append(one.verdict)
    counts = Counter(worst(verdicts) for verdicts in cells.values())
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])


def _player(outcome: CellOutcome) -> tuple[str, Profile]:
    return outcome.name.client, outcome.name.profile


def _row(
    player: tuple[str, Profile], mine: Sequence[CellOutcome], faults: Sequence[str]
) -> MatrixRow:
    client, profile = player
    library, version = next(((o.library, o.library_version) for o in mine if o.library), ("", ""))
    return MatrixRow(
        client=client,
        profile=profile,
        library=f"{library} {version}".strip(),
        library_version=version,
        cells=[_cell(fault, [one for one in mine if one.name.fault == fault]) for fault in faults],
        unsupported=next((one.unsupported for one in mine if one.unsupported), ""),
    )


def _cell(fault: str, outcomes: list[CellOutcome]) -> MatrixCell:
    verdicts: list[ClientVerdict] = [one.verdict for one in outcomes if one.verdict is not None]
    worst_verdict = worst(verdicts)
    notes = ["failed" for one in outcomes if one.failed]
    notes += ["unsupported" for one in outcomes if one.unsupported]
    notes += ["n/a" for one in outcomes if one.not_applicable]
    return MatrixCell(
        fault=fault,
        verdict=worst_verdict,
        times=sum(verdict == worst_verdict for verdict in verdicts),
        sittings=len(verdicts),
        note=notes[0] if notes else "",
        outcomes=outcomes,
    )


def matrix_table(rows: Sequence[MatrixRow], faults: Sequence[str]) -> Table:
    """The matrix of the clients that could be played, as a table of text."""
    cells = [
        [row.client, row.profile, *[toned(cell.text, cell.verdict or "") for cell in row.cells]]
        for row in rows
        if not row.unsupported
    ]
    names = [TableColumn("client", "name"), TableColumn("profile", "name")]
    return Table(columns=[*names, *map(TableColumn, faults)], rows=cells, prose=True)


def toned(text: str, verdict: str) -> Toned:
    """A text in the colour of a verdict; dim without one."""
    return Toned(text, _STYLES.get(verdict, "dim"))


def why_lines(rows: Sequence[MatrixRow]) -> Iterator[str]:
    """Why cells of these rows are not safe, a line for each reason."""
    for row in rows:
        for cell in row.cells:
            for why in reasons(cell.outcomes):
                yield f"{row.client} ({row.profile}), {cell.fault}: {why}"


def reasons(outcomes: Sequence[CellOutcome]) -> Iterator[str]:
    """Why a cell is not safe: each rule once, with the sentence of its first sitting."""
    seen: set[str] = set()
    for outcome in outcomes:
        if outcome.failed:
            yield f"could not be judged: {outcome.failed}"
        for finding in sorted(outcome.findings, key=lambda f: VERDICTS.index(f.verdict)):
            if finding.rule not in seen:
                seen.add(finding.rule)
                whose = _whose(outcome) if finding.rule == "wrong value" else ""
                yield f"{finding.verdict}: {finding.why}{whose}"
        if outcome.disturbed and outcome.disturbed not in seen:
            seen.add(outcome.disturbed)
            yield f"this can come from the machine: {outcome.disturbed}"


def _whose(outcome: CellOutcome) -> str:
    first = next(iter(outcome.wrong_values), None)
    return f" (the first, of {first.key}: {first.what})" if first else ""
