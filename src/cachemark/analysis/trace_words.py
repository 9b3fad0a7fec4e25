"""The differences of a tape from its trace, in words: for the plan and for reports. Pure."""

from cachemark.model.tape_facts import TapeFacts, TraceFacts

_MOST_REASONS = 5


def trace_differences(tape: TapeFacts, *, replayed: bool) -> list[str]:
    """A sentence for each difference; `replayed`: the trace's own times are used."""
    trace = tape.trace
    if trace is None:
        return []
    lines = [_left_out(trace, tape.ops)] if trace.left_out else []
    lines += [
        f"{count:,} lines are no operations of clients: {name}"
        for name, count in trace.other_lines.items()
    ]
    if trace.unused_columns:
        lines.append(f"columns that are not used: {', '.join(trace.unused_columns)}")
    if trace.unfilled:
        lines.append(
            f"{trace.unfilled:,} gets do not fill the cache: no line says how large their value is"
        )
    if replayed and trace.whole_seconds:
        lines.append("times are whole seconds: arrivals within each second are drawn at random")
    return lines


def _left_out(trace: TraceFacts, ops: int) -> str:
    """Such as `left out 0.31 % of 30,100 operations: 90 append, which tapes do not support`."""
    count = sum(trace.left_out.values())
    most = sorted(trace.left_out.items(), key=lambda reason: -reason[1])
    reasons = [f"{number:,} {reason}" for reason, number in most[:_MOST_REASONS]]
    more = len(most) - len(reasons)
    rest = f", and {more} other reasons" if more else ""
    share = 100 * count / (count + ops)
    return f"left out {share:.2f} % of {count + ops:,} operations: {', '.join(reasons)}{rest}"
