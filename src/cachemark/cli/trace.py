"""`cachemark trace`: convert traces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from cachemark.cli.output import print_text
from cachemark.report.json_text import json_text
from cachemark.report.written_trace import lines_of
from cachemark.runs.trace_files import written_trace


def trace(
    action: Annotated[
        Literal["convert"],
        Parameter(help="convert: write a trace in cachemark's own format, or as CSV"),
    ],
    source: Annotated[Path, Parameter(help="the trace; also .zst and .gz")],
    out: Annotated[Path, Parameter(help="the file to write; CSV if its name ends in .csv")],
    *,
    trace_format: Annotated[
        str | None,
        Parameter(help="twitter, kvcache, memcached or csv; default: from the first lines"),
    ] = None,
    trace_columns: Annotated[
        str | None, Parameter(name=["--columns"], help="the columns of a trace without a header")
    ] = None,
    anonymous: Annotated[
        bool, Parameter(negative="", help="replace keys by a keyed hash, whose key is thrown away")
    ] = False,
    sample: Annotated[
        str, Parameter(help="keep one key of so many, with all its operations: 1/100")
    ] = "1/1",
    json: Annotated[bool, Parameter(negative="", help="print what was written as JSON")] = False,
) -> None:
    """Write a trace of any format in cachemark's own, or as CSV.

    cachemark's own format is compact, has a checksum in each block, and keeps what is known besides
    the operations. A trace is never in memory as a whole. docs/trace-format.md describes it.
    """
    arguments = ["trace", action, f"--sample={sample}"]
    arguments += [f"--trace-format={trace_format}"] if trace_format else []
    arguments += [f"--columns={trace_columns}"] if trace_columns else []
    arguments += ["--anonymous"] if anonymous else []
    written = written_trace([*arguments, "--", str(source), str(out)])
    print_text(json_text(written) if json else "\n".join(lines_of(written, str(out))))
