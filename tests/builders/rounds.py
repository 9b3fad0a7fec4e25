"""Made-up slices, and outcomes of arms that were played in turns."""

import random
from collections.abc import Callable, Mapping, Sequence

import msgspec

from cachemark.model import histogram
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.protocol import Done, Operation
from cachemark.model.rounds import Rounds, Slices
from cachemark.runs.sittings.order import random_square, turns
from tests.builders.histograms import from_values
from tests.builders.outcomes import measured

SLICE_NS = 30_000_000
# An arm, its predecessor, and the number of the slice in its sitting, to operations per second.
Rate = Callable[[int, int, int], float]


def sitting(
    arms: int, squares: int, rate: Rate, seed: int = 0, cpu_us: float = 20.0
) -> list[Slices]:
    """The slices of each arm in one sitting, with the given rate for each slice."""
    order = random.Random(seed)
    found = [Slices() for _ in range(arms)]
    before, number = -1, 0
    for square in range(squares):
        for turn in turns(square, random_square(order, range(arms))):
            if turn.counted:
                ops = round(rate(turn.arm, before, number) * SLICE_NS / 1e9)
                of = found[turn.arm]
                of.square.append(turn.square)
                of.row.append(turn.row)
                of.position.append(turn.position)
                of.predecessor.append(before)
                of.began_ns.append(number * SLICE_NS)
                of.wall_ns.append(SLICE_NS)
                of.ops.append(ops)
                of.errors.append(0)
                of.lead_in_ops.append(ops // 10)
                of.elapsed_ns.append(SLICE_NS)
                of.worker_cpu_ns.append(round((ops + ops // 10) * cpu_us * 1000))
                of.server_cpu_ns.append(round((ops + ops // 10) * cpu_us * 500))
                of.idle_cpu_ns.append(0)
                of.steal_ns.append(0)
            before, number = turn.arm, number + 1
    return found


def outcome(
    cell: Cell,
    number: int,
    cells: Sequence[Cell],
    slices: Slices,
    times_ns: Sequence[int] = (),
    *,
    part: int = 0,
) -> Outcome:
    """An arm's valid outcome of block `number`; `cells` are the arms of its set.

    A block may have several sittings; `part` is the number of this one there.
    """
    base = measured(cell.client, number, 100)
    times = histogram.encode(from_values(times_ns)) if times_ns else None
    ok = sum(slices.ops)
    operation = Operation(attempts=ok, ok=ok, hits=ok, keys=ok, response=times, service=times)
    return msgspec.structs.replace(
        base,
        trial=msgspec.structs.replace(
            base.trial, cell=cell, block=number, sitting=10 * number + part
        ),
        measure=Done(
            phase="measure",
            elapsed_ns=sum(slices.elapsed_ns),
            send_elapsed_ns=sum(slices.elapsed_ns),
            operations={"get": operation},
        ),
        rounds=Rounds(
            arms=[f"{of.client} {of.server}" for of in cells],
            arm=list(cells).index(cell),
            length_us=SLICE_NS // 1000,
            lead_in_us=3000,
            slices=slices,
        ),
    )


def run(
    rates: Mapping[str, float],
    sittings: int,
    *,
    deviation: float = 0.02,
    cpu_us: Mapping[str, float] | None = None,
    server: str = "embedded",
    first: int = 0,
    part: int = 0,
) -> list[Outcome]:
    """Clients of one set, one outcome for each client and sitting.

    Each client's level differs from sitting to sitting by `deviation`, and as much from slice to
    slice.
    """
    cells = [Cell(client=c, server=server, workload="get", load="one") for c in rates]
    found: list[Outcome] = []
    for number in range(first, first + sittings):
        draw = random.Random(f"{list(rates)} {number} {server}")
        levels = [rate * draw.lognormvariate(0, deviation) for rate in rates.values()]

        def rate(
            arm: int, _before: int, _number: int, levels: list[float] = levels,
            draw: random.Random = draw,
        ) -> float:  # fmt: skip
            return levels[arm] * draw.lognormvariate(0, deviation)

        made = sitting(len(cells), 2, rate, number)
        for arm, cell in enumerate(cells):
            slices = _with_cpu(made[arm], (cpu_us or {}).get(cell.client, 20.0))
            times = [round(1e9 / levels[arm] * draw.lognormvariate(0, 0.2)) for _ in range(500)]
            found.append(outcome(cell, number, cells, slices, times, part=part))
    return found


def _with_cpu(slices: Slices, cpu_us: float) -> Slices:
    spent = [round(ops * 1.1 * cpu_us * 1000) for ops in slices.ops]
    return msgspec.structs.replace(slices, worker_cpu_ns=spent)
