"""The times of whole groups of the tape (docs/tape.md), from a lane's record after the window."""

from __future__ import annotations

from histogram import encode


def group_times_ns(record, length):
    """The time of each of a lane's groups whose operations were all right, and all counted.

    Groups do not continue from one slice to the next. This takes operations in the order of their
    calls; tasks record them in the order of their ends.
    """
    times, not_counted = [], frozenset(record.lead_in)
    ends = [*record.firsts[1:], len(record.codes)]
    for first, last in zip(record.firsts, ends):
        whole, began_ns, ended_ns = False, 0, 0
        for at in sorted(range(first, last), key=record.begins.__getitem__):
            position = record.numbers[at] % length
            if position == 0:
                whole, began_ns, ended_ns = True, record.begins[at], 0
            whole = whole and record.codes[at] >= 0 and at not in not_counted
            ended_ns = max(ended_ns, record.begins[at] + record.times[at])
            if position == length - 1 and whole:
                times.append(ended_ns - began_ns)
                whole = False
    return times


def message(records, length):
    """The groups of all lanes, for the message; None if the lanes recorded none."""
    if any(record.begins is None for record in records):
        return None
    times = [time for record in records for time in group_times_ns(record, length)]
    return {"length": length, "ok": len(times), "time": encode(times)}
