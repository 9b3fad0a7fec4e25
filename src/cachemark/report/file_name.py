"""Names of files that are made of the names of cells, which may have any length."""

from __future__ import annotations

import hashlib

# File systems allow 255 bytes, and suffixes follow.
_LONGEST = 150
_DIGEST = 10


def shortened(name: str) -> str:
    """A name that fits; two long names stay different."""
    if len(name) <= _LONGEST:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:_DIGEST]
    return f"{name[: _LONGEST - _DIGEST - 1]}-{digest}"
