"""The plan of a run of `resilience` in words. Pure."""

from collections import Counter
from collections.abc import Sequence

from cachemark.analysis.number_format import count_of, rough_time
from cachemark.analysis.resilience.cell import CellName
from cachemark.model.faults import fault_named

# To start the server and the client, to store the keys, and to judge the calls.
_AROUND_S = 3.0


def plan_text(cells: Sequence[CellName], jobs: int) -> str:
    """The number of cells and their time: if all clients recover at once, and if none does."""
    if not cells:
        return "nothing is left to play"
    faults = [fault_named(cell.fault) for cell in cells]
    shortest_s = (
        sum(_AROUND_S + (of.before_ms + of.during_ms + of.after_ms) / 1e3 for of in faults) / jobs
    )
    longest_s = sum(_AROUND_S + fault.longest_ms / 1e3 for fault in faults) / jobs
    clients = Counter(cell.client for cell in cells)
    lines = [f"{client}: {count_of(count, 'cell')}" for client, count in clients.items()]
    head = (
        f"{count_of(len(cells), 'cell')} of {count_of(len(clients), 'client')}, "
        f"{jobs if jobs > 1 else 'one'} at a time: {rough_time(shortest_s)} if all clients recover "
        f"at once, {rough_time(longest_s)} if none does; an unplayable cell takes no time"
    )
    return "\n".join([head, *lines])
