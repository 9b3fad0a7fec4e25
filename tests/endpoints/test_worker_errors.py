"""What a worker says of itself becomes a reason of bounded length."""

from __future__ import annotations

import sys

from cachemark.endpoints.worker import Worker
from cachemark.model.protocol import Failure, Unsupported

LONG = "x" * 10**6


def test_a_reason_without_end_is_cut() -> None:
    with Worker([sys.executable, "-c", "input()"]) as worker:
        failed = worker.error_for_answer(Failure(kind="internal", text=LONG), "run")
        refused = worker.error_for_answer(Unsupported(reason=LONG, remedy=LONG), "hello")
    assert all(len(text) < 3000 for text in (failed.text, refused.text, refused.remedy))
