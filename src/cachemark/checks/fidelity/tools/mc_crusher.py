"""mc-crusher discards replies unread and reports no times, so nothing can be compared."""

from __future__ import annotations

from cachemark.checks.fidelity.tools.tool import Tool

TOOL = Tool(
    name="mc-crusher",
    programs=("mc-crusher",),
    home="https://github.com/memcached/mc-crusher",
    silent="it reads no replies and reports no times",
)
