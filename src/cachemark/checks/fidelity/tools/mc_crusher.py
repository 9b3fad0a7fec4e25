"""mc-crusher throws replies away unread, so there is nothing to hold against anything."""

from __future__ import annotations

from cachemark.checks.fidelity.tools.tool import Tool

TOOL = Tool(
    name="mc-crusher",
    programs=("mc-crusher",),
    home="https://github.com/memcached/mc-crusher",
    silent="it reads no replies and tells no times",
)
