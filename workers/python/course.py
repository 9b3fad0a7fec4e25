"""An open loop's window as it went, from what was noted of each operation (see `Course`)."""

from __future__ import annotations

from itertools import compress

# So many slices at most, each a power of two of this long, so that those of workers fit together.
_SLICES = 256
_SHORTEST_NS = 1_000_000


def course(records, start_ns):
    """Even slices from the window's start: operations that ended in each, their response times."""
    done = [_done(record) for record in records]
    ends = [end - start_ns for each in done for end, _ in each]
    if not ends:
        return None
    slice_ns = _SHORTEST_NS
    while max(ends) // slice_ns >= _SLICES:
        slice_ns *= 2
    count = max(ends) // slice_ns + 1
    ok, response_ns = [0] * count, [0] * count
    for each in done:
        for end, took in each:
            at = max(0, end - start_ns) // slice_ns
            ok[at] += 1
            response_ns[at] += took
    return {"slice_ns": slice_ns, "ok": ok, "response_ns": response_ns}


def _done(record):
    """When each operation that was answered rightly ended, and its response time."""
    right = [code >= 0 for code in record.codes]
    responses = map(int.__add__, record.times, record.lags)
    return list(compress(zip(record.ends, responses), right))
