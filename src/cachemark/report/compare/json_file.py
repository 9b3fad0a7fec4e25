"""A comparison as JSON: the value that the other forms are made from."""

from __future__ import annotations

import msgspec

from cachemark.report.compare.value import Compared


def render(compared: Compared, width: int | None) -> str:
    """The comparison as a document; `width` has no meaning here."""
    del width
    document = {"regressed": compared.regressed, **msgspec.to_builtins(compared)}
    return msgspec.json.format(msgspec.json.encode(document)).decode() + "\n"
