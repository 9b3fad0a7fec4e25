"""The cost of each language's workers beside their operations: time to start, and memory."""

from typing import NamedTuple

from cachemark.model.outcome import Cell
from cachemark.model.sitting_plan import library_of


class LanguageCost(NamedTuple):
    """One worker process, with its library.

    `start_s`: a server and this worker start, connect and end, on two CPUs; without prefill and
    warm-up. `memory_mib`: resident in a sitting.
    """

    start_s: float
    memory_mib: int


# Times: of trials whose wall time is known, less their warm-up and window. Memory: the largest
# client in the column `memory` of `python benchmarks/slices.py CLIENT…`, and about half of it more,
# as experiments have larger tapes.
COSTS = {
    "c": LanguageCost(0.1, 16), "go": LanguageCost(0.1, 40),
    "java": LanguageCost(1.4, 220), "native": LanguageCost(0.1, 48),
    "node": LanguageCost(0.35, 120), "perl": LanguageCost(0.15, 30),
    "php": LanguageCost(0.15, 40), "pypy": LanguageCost(0.6, 150),
    "python": LanguageCost(0.35, 50), "reference": LanguageCost(0.2, 30),
    "ruby": LanguageCost(0.35, 50), "rust": LanguageCost(0.1, 16),
}  # fmt: skip
# For languages that the table lacks.
_OTHER = LanguageCost(0.4, 64)


def cost_of(language: str) -> LanguageCost:
    """The cost of a worker in this language, or a cautious one if it is not known."""
    return COSTS.get(language, _OTHER)


def cost_of_cell(cell: Cell) -> LanguageCost:
    """The cost of one worker of a cell's client."""
    return cost_of(library_of(cell).partition("/")[0])
