"""`cachemark trace`: convert traces, show what is in them, and fit experiments to them."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from cachemark.cli.exit_status import OK
from cachemark.cli.output import print_sentences, print_text, terminal_width, write_out
from cachemark.model.errors import UsageError
from cachemark.report.json_text import json_text
from cachemark.report.terminal import draw
from cachemark.report.trace.told import lines_of
from cachemark.runs.trace_files import shown_trace, told_trace, written_trace

if TYPE_CHECKING:
    from cachemark.report.document import Document


@dataclass(frozen=True)
class TraceReading:
    """How a trace of lines is read."""

    trace_format: Annotated[
        str | None,
        Parameter(
            help="twitter, kvcache, memcached, csv, oracleGeneral; default: from its beginning"
        ),
    ] = None
    trace_columns: Annotated[
        str | None,
        Parameter(name=["--columns"], help="columns without a header", allow_leading_hyphen=True),
    ] = None

    @property
    def words(self) -> list[str]:
        """The engine's arguments."""
        words = [f"--trace-format={self.trace_format}"] if self.trace_format else []
        return words + ([f"--columns={self.trace_columns}"] if self.trace_columns else [])


@dataclass(frozen=True)
class Conversion:
    """The part of a trace that `convert` keeps."""

    anonymous: Annotated[
        bool, Parameter(help="convert: replace keys by a keyed hash, whose key is thrown away")
    ] = False
    round_sizes: Annotated[bool, Parameter(help="convert: round sizes of values up")] = False
    sample: Annotated[
        str | None, Parameter(help="convert: keep a part of the keys, with all operations: 1/100")
    ] = None


def trace(
    action: Annotated[
        Literal["convert", "show", "fit"],
        Parameter(
            help="convert: write another format; show: print the traffic; fit: write an "
            "experiment whose tape behaves like it"
        ),
    ],
    source: Annotated[Path, Parameter(help="the trace; also .zst and .gz")],
    out: Annotated[
        Path | None,
        Parameter(
            help="convert: the file to write, CSV if its name ends in .csv; show: a page, .html; "
            "fit: an experiment, .toml"
        ),
    ] = None,
    *,
    reading: Annotated[TraceReading | None, Parameter(name="*")] = None,
    conversion: Annotated[Conversion | None, Parameter(name="*")] = None,
    keys: Annotated[
        str | None,
        Parameter(help="show: follow at most this number of keys, or a part of them, such as 1m"),
    ] = None,
    json: Annotated[bool, Parameter(help="print the figures as JSON")] = False,
) -> int:
    """Write a trace of any format in cachemark's own, or as CSV; or describe its traffic.

    `show` prints the mix, sizes, expiry times, keys, working set, popularity, bursts and new keys;
    OUT is a page with pictures of them. `fit` writes an experiment with the same mix, sizes, expiry
    times, popularity and bursts, and prints how far the two are apart. cachemark's own format is
    compact, and keeps facts besides the operations: docs/trace-format.md.
    """
    words = ["trace", action, *(reading or TraceReading()).words]
    if action != "convert" and conversion not in (None, Conversion()):
        raise UsageError(f"trace {action}: --anonymous, --round-sizes, --sample", "leave them out")
    if action == "show":
        words += [f"--keys={keys}"] if keys else []
        return _show([*words, "--", str(source)], source, out, json=json)
    if keys:
        raise UsageError(f"trace {action}: --keys", "it is for `trace show`")
    if out is None:
        raise UsageError(f"trace {action}: no file to write", f"cachemark trace {action} IN OUT")
    if action == "fit":
        return _fit([*words, "--", str(source), str(out)], json=json)
    return _convert(words, source, out, conversion or Conversion(), json=json)


def _fit(words: list[str], *, json: bool) -> int:
    from cachemark.report.trace.told import document  # noqa: PLC0415

    found = told_trace(words)
    return show_document(document(found), found.figures, None, json=json)


def _convert(
    words: list[str], source: Path, out: Path, conversion: Conversion, *, json: bool
) -> int:
    words = [*words, "--anonymous"] if conversion.anonymous else words
    words = [*words, "--round-sizes"] if conversion.round_sizes else words
    words = [*words, f"--sample={conversion.sample}"] if conversion.sample else words
    written = written_trace([*words, "--", str(source), str(out)])
    if json:
        print_text(json_text(written))
    else:
        print_sentences("\n".join(lines_of(written, str(out))))
    return OK


def _show(words: list[str], source: Path, out: Path | None, *, json: bool) -> int:
    from cachemark.report.trace.statistics import document  # noqa: PLC0415

    shown = shown_trace(words)
    return show_document(document(shown, source.name), shown, out, json=json, option="OUT")


def show_document(
    made: "Document", figures: object, out: Path | None, *, json: bool, option: str = "--out"
) -> int:
    """Write a document as a page if a file was named; print it, or its figures."""
    if out is not None:
        # Late, as plots take a while to load.
        from cachemark.report.html.document_page import document_page  # noqa: PLC0415

        write_out(out, document_page(made, {"trace.json": json_text(figures)}), option=option)
    print_text(json_text(figures) if json else draw(made, terminal_width()))
    return OK
