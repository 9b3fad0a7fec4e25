"""Questions of a run: the cells that are compared with each other, and the tested pairs.

Fixed before the run, from its cells alone.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from cachemark.analysis.rounds.family import FamilyPair, family_of
from cachemark.model.client_name import without_repeat
from cachemark.model.outcome import Cell
from cachemark.model.plan import is_repeat


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Clients on one server, or servers for one client; `common` is what all of its cells share.

    `family` are the pairs that are tested together. `reference` is the cell that the others are
    compared with in tables. `twice` are the two arms of the A/A test: the repetition, and the cell
    that it repeats. `beside` did the same work and are no choices, such as the yardstick. The only
    cell that was played has a question, without a family, if it was played twice.
    """

    kind: Literal["clients", "servers"]
    common: str
    workload: str
    load: str
    cells: tuple[Cell, ...]
    family: tuple[FamilyPair, ...]
    reference: Cell
    twice: FamilyPair | None = None
    beside: tuple[Cell, ...] = ()

    @property
    def compares(self) -> bool:
        """Whether there is anything to compare but a cell with itself."""
        return len(self.cells) > 1

    def name(self, cell: Cell) -> str:
        """How a cell is called among those of this question."""
        return cell.client if self.kind == "clients" else cell.server


def questions_of(
    cells: Sequence[Cell],
    reference_client: str = "",
    reference_server: str = "",
    beside: Sequence[Cell] = (),
) -> list[Question]:
    """The questions of a run: clients on each server, then servers for each client.

    A question needs at least two cells, or one that is played twice. Where the named reference is
    missing, it is the first cell. Cells that are `beside` are part of the questions about clients,
    and no choices.
    """
    asked: dict[tuple[Literal["clients", "servers"], str, str, str], list[Cell]] = {}
    for cell in cells:
        asked.setdefault(("clients", cell.server, cell.workload, cell.load), []).append(cell)
    for cell in (cell for cell in cells if not is_repeat(cell)):
        asked.setdefault(("servers", cell.client, cell.workload, cell.load), []).append(cell)
    found: list[Question] = []
    for (kind, common, workload, load), group in asked.items():
        choices = [cell for cell in group if not is_repeat(cell)]
        others = _same_work(group[0], beside) if kind == "clients" else []
        twice = _twice([*group, *others])
        if len(choices) < 2 and (twice is None or not choices):
            continue
        wanted = [
            cell
            for cell in choices
            if (cell.client if kind == "clients" else cell.server)
            == (reference_client if kind == "clients" else reference_server)
        ]
        reference = wanted[0] if wanted else choices[0]
        found.append(
            Question(
                kind=kind,
                common=common,
                workload=workload,
                load=load,
                cells=tuple(choices),
                family=family_of(choices, reference),
                reference=reference,
                twice=twice,
                beside=tuple(cell for cell in others if not is_repeat(cell)),
            )
        )
    return found


def _same_work(cell: Cell, others: Sequence[Cell]) -> list[Cell]:
    """The other cells with the work and the server of a cell."""
    return [other for other in others if msgspec.structs.replace(other, client=cell.client) == cell]


def _twice(group: Sequence[Cell]) -> FamilyPair | None:
    """The two arms of the A/A test of a group."""
    for again in (cell for cell in group if is_repeat(cell)):
        client = without_repeat(again.client)
        same = msgspec.structs.replace(again, client=client)
        if same in group:
            return again, same
    return None
