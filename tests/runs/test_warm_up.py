"""When a client is warm."""

from __future__ import annotations

import pytest

from cachemark.runs.warm_up import is_warm

CASES = [
    ("too few slices", [100] * 15, False),
    ("constant", [100] * 16, True),
    ("a JIT compiler still works", [100] * 8 + [150] * 8, False),
    ("a leap that is over", [100] * 8 + [150] * 16, True),
    ("one slow slice is no warm-up", [100] * 12 + [3] + [100] * 3, True),
    ("slower is warm", [100] * 8 + [90] * 8, True),
    ("nothing done", [0] * 16, True),
]


@pytest.mark.parametrize(("ops", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_is_warm(ops: list[int], expected: bool) -> None:
    assert is_warm(ops) is expected
