"""`cachemark protocol`: print the worker protocol as a document or as a JSON Schema."""

from typing import Annotated

from cyclopts import Parameter

from cachemark.cli.output import print_text
from cachemark.model.protocol_docs import document, schema


def protocol(
    *,
    json_schema: Annotated[
        bool, Parameter(name="--schema", help="print the JSON Schema instead")
    ] = False,
) -> None:
    """Print the worker protocol with all fields, for authors of workers."""
    print_text(schema() if json_schema else document())
