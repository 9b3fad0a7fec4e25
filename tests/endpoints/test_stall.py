"""A prefill in which failures are added is given up after a few reports."""

from __future__ import annotations

import pytest

from cachemark.endpoints.stall import StallDetector
from cachemark.model.protocol import Progress


@pytest.mark.parametrize(
    ("reports", "stalled"),
    [
        ([(0, 1), (0, 2)], False),
        ([(0, 1), (0, 2), (0, 3)], True),
        ([(0, 1), (0, 1), (0, 1), (0, 1)], False),
        ([(0, 1), (5, 2), (5, 3), (5, 4)], False),
        ([(0, 1), (5, 2), (5, 3), (5, 4), (5, 5)], True),
        ([(10, 0), (20, 0), (30, 9)], False),
        ([(n, n) for n in range(1, 20)], False),
        ([(n, n) for n in range(1, 21)], True),
        ([(n, 5) for n in range(1, 100)], False),
    ],
)
def test_only_failures(reports: list[tuple[int, int]], stalled: bool) -> None:
    detector = StallDetector()
    seen = [detector.is_stalled(Progress(ops=ops, errors=errors)) for ops, errors in reports]
    assert seen[-1] is stalled
