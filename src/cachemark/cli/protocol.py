"""`cachemark protocol`: print the worker protocol as a document or as a JSON Schema."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from cachemark.model.protocol_docs import document, schema


def protocol(
    *,
    json_schema: Annotated[
        bool, Parameter(name="--schema", negative="", help="print the JSON Schema instead")
    ] = False,
) -> None:
    """Print PROTOCOL.md, for authors of workers."""
    sys.stdout.write(schema() if json_schema else document())
