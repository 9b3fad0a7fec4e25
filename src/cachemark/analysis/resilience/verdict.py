"""The verdict of a cell: every rule with its limit in one table, and the sentence that says why."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from cachemark.analysis.resilience.figures import GOOD_IN_A_ROW, Figures

ClientVerdict = Literal["unsafe", "hangs", "degraded", "safe"]
# Worst first.
VERDICTS: tuple[ClientVerdict, ...] = ("unsafe", "hangs", "degraded", "safe")


class FaultFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One rule that a cell broke."""

    rule: str
    verdict: ClientVerdict
    why: str


class Rule(NamedTuple):
    """A rule is broken if its figure is above its limit; without a limit, if the figure is None.

    `figure` is a field of Figures. `why` is a sentence that may name the figure as `{value}`, and
    other figures by their names.
    `common_only`: the rule is about the time-out that only the profile `common` sets.
    """

    name: str
    verdict: ClientVerdict
    figure: str
    limit: float | None
    why: str
    common_only: bool = False


# fmt: off
RULES: tuple[Rule, ...] = (
    Rule("wrong value", "unsafe", "wrong", 0, "{value:,.0f} reads got a wrong value"),
    Rule("stale value", "unsafe", "stale", 0,
         "{value:,.0f} reads got a value that had been overwritten before they began"),
    Rule("untrusted server", "unsafe", "untrusted_calls", 0,
         "{value:,.0f} calls were executed by a server whose certificate it must not accept"),
    Rule("lost call", "hangs", "lost_calls", 0, "{end}"),
    Rule("longest call", "hangs", "longest_ms", 5000,
         "a call lasted {value:,.0f} ms: callers wait as long as the fault lasts"),
    Rule("no recovery", "hangs", "recovery_ms", None,
         f"not back within {{watched_s:.0f}} s: no {GOOD_IN_A_ROW} right answers in a row after "
         "the fault"),
    Rule("time-out", "degraded", "longest_ms", 1000,
         "a call lasted {value:,.0f} ms with a time-out of 500 ms", common_only=True),
    Rule("slow recovery", "degraded", "recovery_ms", 2000,
         "it recovered {value:,.0f} ms after the fault"),
    Rule("errors as misses", "degraded", "false_misses", 0,
         "{value:,.0f} misses of keys that the server had, or that no server was asked for: "
         "failures look like misses"),
    Rule("needless failures", "degraded", "failed_share", 0.6,
         "{value:.0%} of the calls failed, though other servers, or a new connection, would have "
         "served them"),
    # The callers make 400 calls a second, and a server that closes each idle connection makes each
    # of them need a new one. A client above the limit opens more connections than it makes calls.
    Rule("reconnects", "degraded", "connections_per_s", 450,
         "it opened {value:,.0f} connections a second for 400 calls"),
    Rule("CPU", "degraded", "cpus_more", 0.5,
         "it used {value:.2f} CPUs more while the fault lasted than before"),
    # A pool that is made once, at the first failure, is no leak: xmemcached's has 20 selectors of
    # two descriptors each.
    Rule("descriptors", "degraded", "descriptors_grown", 50,
         "it holds {value:,.0f} more file descriptors than before"),
    Rule("threads", "degraded", "threads_grown", 8,
         "it has {value:,.0f} more threads than before"),
)
# fmt: on
# The end of the client's process shows it: a crashed client has no figures.
CRASH = Rule("crash", "hangs", "", None, "its process ended in a call, and needs a restart: {end}")


def crash(end: str) -> FaultFinding:
    """The finding about a client whose process crashed; `end` says how it ended."""
    return FaultFinding(rule=CRASH.name, verdict=CRASH.verdict, why=CRASH.why.format(end=end))


def findings(figures: Figures, profile: str) -> list[FaultFinding]:
    """Every rule that the figures of a cell break, in the order of the table."""
    violations: list[FaultFinding] = []
    for rule in RULES:
        value: float | None = getattr(figures, rule.figure)
        # After a lost call its caller stops.
        applies = not (rule.limit is None and figures.lost_calls)
        applies = applies and (profile == "common" or not rule.common_only)
        if applies and _is_broken(rule, value):
            why = rule.why.format(value=value, **msgspec.structs.asdict(figures))
            violations.append(FaultFinding(rule=rule.name, verdict=rule.verdict, why=why))
    return violations


def verdict_of(violations: Sequence[FaultFinding]) -> ClientVerdict:
    """The worst verdict among the findings."""
    return worst([one.verdict for one in violations]) or "safe"


def worst(verdicts: Sequence[ClientVerdict]) -> ClientVerdict | None:
    """The worst of some verdicts; None if there are none."""
    return next((verdict for verdict in VERDICTS if verdict in verdicts), None)


def _is_broken(rule: Rule, value: float | None) -> bool:
    if rule.limit is None:
        return value is None
    return value is not None and value > rule.limit
