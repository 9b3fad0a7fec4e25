"""A history as JSON: the value that the other forms are made from."""

from __future__ import annotations

import msgspec

from cachemark.report.history.value import History


def render(history: History, width: int | None) -> str:
    """The history as a document; `width` has no meaning here."""
    del width
    return msgspec.json.format(msgspec.json.encode(history)).decode() + "\n"
