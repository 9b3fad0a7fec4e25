"""`cachemark record`: record the traffic of a running memcached, or read captured packets."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cachemark.cli.output import print_sentences, print_text
from cachemark.report.console import plain_console
from cachemark.report.json_text import json_text
from cachemark.report.trace.told import lines_of
from cachemark.runs.trace_files import written_trace


def record(
    source: Annotated[
        str,
        Parameter(
            allow_leading_hyphen=True,
            help="the memcached, as HOST:PORT; or packets: a pcap or pcapng file, - is stdin",
        ),
    ],
    *,
    out: Annotated[Path, Parameter(help="the trace to write")],
    duration: Annotated[str | None, Parameter(help="how long to record, such as 60s")] = None,
    requests: Annotated[
        str | None, Parameter(help="end after this number of requests, such as 1m")
    ] = None,
    size: Annotated[
        str | None, Parameter(help="end after this much of the log or of the capture, such as 1g")
    ] = None,
    port: Annotated[
        str | None, Parameter(help="the servers' ports in a capture: 11211,11212; default: 11211")
    ] = None,
    sample: Annotated[
        str, Parameter(help="record a part of the keys, with all their requests, such as 1/100")
    ] = "1/1",
    snapshot: Annotated[
        bool, Parameter(help="record the items that it holds now, instead of its traffic")
    ] = False,
    plain_keys: Annotated[
        bool, Parameter(help="write keys as they are, instead of an irreversible hash")
    ] = False,
    round_sizes: Annotated[bool, Parameter(help="round sizes of values up")] = False,
    json: Annotated[bool, Parameter(help="print the result as JSON")] = False,
) -> None:
    """Record the traffic of a running memcached, by its `watch`, as a trace for --trace.

    Nothing is installed, no client notices. It ends after --duration, --requests or --size, or with
    Ctrl-C. Values are never recorded, and keys only as a hash. It prints the lost part, and the
    server's own counters beside the recorded operations. Packets show more, such as hits and
    misses: `tcpdump -i any -s 400 -w - port 11211 | cachemark record - --out day.trace`.
    docs/replay-a-trace.md compares the two. A snapshot needs no traffic: `predict` reads it, too.
    """
    arguments = ["record", f"--out={out}", f"--sample={sample}"]
    limits = {"--duration": duration, "--requests": requests, "--size": size, "--port": port}
    arguments += [f"{name}={value}" for name, value in limits.items() if value]
    flags = {"--plain-keys": plain_keys, "--snapshot": snapshot, "--round-sizes": round_sizes}
    arguments += [name for name, is_set in flags.items() if is_set]
    tell = plain_console(stderr=True, soft_wrap=True)
    shown = "packets from stdin" if source == "-" else source
    tell.print(f"recording {shown}; Ctrl-C ends it", markup=False, highlight=False)
    written = written_trace([*arguments, "--", source])
    if json:
        print_text(json_text(written))
    else:
        print_sentences("\n".join(lines_of(written, str(out))))
