"""Questions of a run: the cells that are compared with each other, the tested pairs, the looks.

Fixed before the run, from its cells alone.
"""

import math
from collections.abc import Sequence
from typing import Literal

import msgspec

from cachemark.analysis.rounds.family import FamilyPair, family_of
from cachemark.analysis.rounds.looks import LOOKS, MIN_BLOCKS, StopRule
from cachemark.model.client_name import parse_client_name, without_repeat
from cachemark.model.experiment import Experiment
from cachemark.model.outcome import Cell
from cachemark.model.plan import is_repeat, uses_rounds


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

    @property
    def pairs_of_rows(self) -> int:
        """How many pairs the rows of its table have, with the cells that are no choices."""
        return math.comb(len(self.cells) + len(self.beside), 2)

    def name(self, cell: Cell) -> str:
        """The name of a cell within this question."""
        return cell.client if self.kind == "clients" else cell.server


def stop_rule(experiment: Experiment) -> StopRule:
    """The margin and the looks of an experiment; without looks, it answers once, at its end."""
    margin = experiment.margin_percent / 100
    if not uses_rounds(experiment):
        return StopRule(margin=margin, looks=(), least=MIN_BLOCKS, unit="block")
    settled = experiment.rounds.until == "settled"
    looks = tuple(at for at in LOOKS if at <= experiment.blocks) if settled else ()
    return StopRule(margin=margin, looks=looks, planned=experiment.blocks)


def asked(experiment: Experiment, cells: Sequence[Cell]) -> list[Question]:
    """The questions about some cells of an experiment.

    Where libraries are compared, the native client is their yardstick and no choice. The loop
    without a library is no client at all.
    """
    clients = [cell for cell in cells if not parse_client_name(cell.client).is_null]
    native = [cell for cell in clients if parse_client_name(cell.client).is_native]
    libraries = [cell for cell in clients if cell not in native]
    if len({cell.client for cell in libraries if not is_repeat(cell)}) < 2:
        return questions_of(clients, experiment.twice)
    return questions_of(libraries, experiment.twice, beside=native)


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
        name = reference_client if kind == "clients" else reference_server
        wanted = [of for of in choices if name == (of.client if kind == "clients" else of.server)]
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
    return [other for other in others if msgspec.structs.replace(other, client=cell.client) == cell]


def _twice(group: Sequence[Cell]) -> FamilyPair | None:
    for again in (cell for cell in group if is_repeat(cell)):
        client = without_repeat(again.client)
        same = msgspec.structs.replace(again, client=client)
        if same in group:
            return again, same
    return None
