"""The report as JSON: everything that the other forms show, with plain units."""

from __future__ import annotations

import msgspec

from cachemark.report.value import Report


def render(report: Report, width: int | None) -> str:
    """The report as JSON text; `width` has no meaning here."""
    del width
    plain = msgspec.to_builtins(report, str_keys=True)
    return msgspec.json.format(msgspec.json.encode(plain)).decode("utf-8") + "\n"
