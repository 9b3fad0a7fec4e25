"""The parts of a cell's name, the name on one line, and names of files that are made of it."""

import hashlib

from cachemark.model.outcome import Cell

CELL_FIELDS = ("client", "server", "workload", "load")
SEPARATOR = " · "


def cell_title(cell: Cell) -> str:
    """A cell on one line: `client · server · workload · load`."""
    return SEPARATOR.join(getattr(cell, field) for field in CELL_FIELDS)


# File systems allow 255 bytes, and suffixes follow.
_LONGEST = 150
_DIGEST = 10


def shortened(name: str) -> str:
    """A name that fits; two long names stay different."""
    if len(name) <= _LONGEST:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:_DIGEST]
    return f"{name[: _LONGEST - _DIGEST - 1]}-{digest}"
