"""Noise of the machine in the window: what makes a trial INVALID, and what is only noted.

The percentiles of an open loop are absolute figures. Noise that took a share of the time withholds
those that it can have moved (`noise_delays`); noise of an unknown extent makes an open loop
INVALID. A closed loop is compared within blocks that have the same noise, and the variation between
blocks is part of its interval. So noise is only noted there, unless it affects some clients more
than others, such as a CPU quota, swapping or thermal throttling. An experiment can change this:
`noise = "refuse"` or `"note"`.
"""

from collections.abc import Callable, Iterator

import msgspec

from cachemark.analysis.verdict.long_pauses import stop_delays
from cachemark.analysis.verdict.open_loop import response_percentile_ns
from cachemark.analysis.verdict.trial_verdict import limit_finding
from cachemark.analysis.verdict.withholding import Delay, delay_of_share
from cachemark.model import machine_limits as limits
from cachemark.model.experiment import Load, NoisePolicy
from cachemark.model.kernel_patterns import kernel_patterns
from cachemark.model.machine_limits import Limits
from cachemark.model.outcome import Finding, HostNoise
from cachemark.model.protocol import Done
from cachemark.model.units import plain

# A slewed wall clock differs by at most this; more is a step.
_SLEW_NS = 1_000_000
_SLEW_PART = 0.001
# Pauses affect p99.9 if all of them together are this part of the window.
_PAUSED_PART = 0.001
_PAUSE_SHARE = 0.1


class _Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A figure and its limits; `biases_comparison`: it affects some clients more than others.

    `from_outside`: what the trial itself does cannot cause it. `share` is the part of the window in
    which it can have delayed operations, if that is known.
    """

    name: str
    text: str
    limits: Limits
    of: Callable[[HostNoise], float | None]
    biases_comparison: bool = False
    from_outside: bool = False
    share: Callable[[HostNoise], float | None] = lambda _: None


def _counted_rule(
    name: str,
    text: str,
    of: Limits = limits.ANY_FAILS,
    *,
    counter: str = "",
    from_outside: bool = False,
    biases_comparison: bool = False,
) -> _Rule:
    """The rule about a counter of the machine, by default the one with the rule's name."""
    key = counter or name.replace("-", "_")
    return _Rule(
        name=name,
        text=text,
        limits=of,
        of=lambda noise: noise.counters.get(key),
        from_outside=from_outside,
        biases_comparison=biases_comparison,
    )


def _pressure_rule(what: str, text: str, *, from_outside: bool = False) -> _Rule:

    def percent(noise: HostNoise) -> float | None:
        waited_us = noise.counters.get(f"{what}_pressure_us")
        # The kernel updates the sum late, so a share may seem to exceed 100 %.
        return None if waited_us is None else min(100.0, waited_us * 1e5 / noise.window_ns)

    def share(noise: HostNoise) -> float | None:
        waited = percent(noise)
        return None if waited is None else waited / 100

    return _Rule(
        name=f"{what}-pressure",
        text=text,
        limits=limits.PRESSURE,
        of=percent,
        from_outside=from_outside,
        share=share,
    )


def _stolen_share(noise: HostNoise) -> float | None:
    """The time in which some CPU was stolen: at most the sum over all CPUs."""
    known = noise.steal_percent is not None and noise.cpus is not None
    return (noise.steal_percent or 0.0) / 100 * (noise.cpus or 0) if known else None


def _retransmits(noise: HostNoise) -> float | None:
    sent, again = (noise.counters.get(name) for name in ("segments_sent", "retransmits"))
    return None if sent is None or again is None else 1e6 * again / max(1, sent)


_RULES = (
    _Rule(
        name="steal",
        text="steal, time that the hypervisor gave to others",
        limits=limits.STEAL,
        of=lambda noise: noise.steal_percent,
        from_outside=True,
        share=_stolen_share,
    ),
    _Rule(
        name="foreign-cpu",
        text="other processes",
        limits=limits.FOREIGN,
        of=lambda noise: noise.foreign_cpu_percent,
        from_outside=True,
    ),
    _pressure_rule("memory", "processes waited for memory"),
    _pressure_rule("io", "processes waited for a disk", from_outside=True),
    _counted_rule(
        "throttled", "server or workers were stopped by a CPU quota", biases_comparison=True
    ),
    _counted_rule("swap-in", "pages were swapped in", counter="swapped_in", biases_comparison=True),
    _counted_rule("too-hot", "a CPU was throttled because of heat", biases_comparison=True),
    _counted_rule(
        "oom-kills", "a process was killed because memory ran out", biases_comparison=True
    ),
    _counted_rule(
        "machine-checks",
        "the hardware reported an error",
        from_outside=True,
        biases_comparison=True,
    ),
    _Rule(
        name="mhz",
        text="the CPU changed its frequency",
        limits=limits.FREQUENCY,
        of=lambda of: None if of.mhz is None else 100 * (of.mhz[1] / of.mhz[0] - 1),
        from_outside=True,
    ),
    _Rule(
        name="retransmits",
        text="TCP retransmitted segments",
        limits=limits.RETRANSMITS,
        of=_retransmits,
    ),
    _counted_rule("accept-drops", "connections were not accepted"),
    _counted_rule("packet-drops", "the kernel dropped packets", limits.ANY_WARNS),
)


def noise_findings(
    noise: HostNoise | None, measure: Done, load: Load, policy: NoisePolicy = "auto"
) -> list[Finding]:
    """Findings about noise in the window; INVALID if it distorts figures to an unknown extent."""
    if noise is None or not noise.window_ns:
        return []
    strict = policy == "refuse" or (policy == "auto" and load.schedule != "closed")
    findings = [
        finding for rule in _rules(noise) for finding in _rule_findings(rule, noise, load, policy)
    ]
    return [
        *findings,
        *_pause_findings(noise, measure, load, policy),
        *_kernel_log_findings(noise, strict, policy),
        *_clock_findings(noise),
    ]


def noise_delays(
    noise: HostNoise | None, measure: Done, load: Load, policy: NoisePolicy = "auto"
) -> list[Delay]:
    """Delays that noise can have caused in an open loop, where its extent is known."""
    if noise is None or not noise.window_ns or load.schedule == "closed" or policy != "auto":
        return []
    delays = [*stop_delays(noise, measure)]
    for rule in _rules(noise):
        figure, share = rule.of(noise), rule.share(noise)
        if figure is not None and share is not None and rule.limits.classify(figure) == "fail":
            text = f"{rule.text}: {plain(figure)} {rule.limits.unit}"
            delays.append(delay_of_share(rule.name, text, measure, share))
    if _paused(noise, _pause_limit_ns(measure)):
        longest_ns = noise.longest_pause_ns or 0
        text = f"the machine paused for up to {longest_ns / 1e6:.1f} ms"
        share = noise.paused_ns / noise.window_ns
        delays.append(delay_of_share("pauses", text, measure, share, longest_ns))
    return delays


def _rules(noise: HostNoise) -> tuple[_Rule, ...]:
    """The rules. Our threads may wait for each other: CPU pressure counts beside others only."""
    foreign = noise.foreign_cpu_percent
    beside_others = foreign is not None and limits.FOREIGN.classify(foreign) != "ok"
    return (*_RULES, _CPU_PRESSURE) if beside_others else _RULES


_CPU_PRESSURE = _pressure_rule("cpu", "processes waited for a CPU", from_outside=True)
# Rules about what comes from outside of the trial.
OUTSIDE_RULES = frozenset(rule.name for rule in (*_RULES, _CPU_PRESSURE) if rule.from_outside)


def _rule_findings(
    rule: _Rule, noise: HostNoise, load: Load, policy: NoisePolicy
) -> Iterator[Finding]:
    figure = rule.of(noise)
    if figure is None or rule.limits.classify(figure) == "ok":
        return
    fails = rule.limits.classify(figure) == "fail"
    strict = policy == "refuse" or (
        # With a known share of the time, single percentiles are withheld instead.
        policy == "auto" and load.schedule != "closed" and rule.share(noise) is None
    )
    invalidates = fails and (strict or (rule.biases_comparison and policy != "note"))
    limit = rule.limits.fail if fails and rule.limits.fail is not None else rule.limits.warn
    weight, unit = "INVALID" if invalidates else "noise", rule.limits.unit
    text = f"{rule.text}: {plain(figure)} {unit}, allowed {limit:g}"
    yield limit_finding(rule.name, text, figure, limit, unit, weight=weight)


def _kernel_log_findings(noise: HostNoise, strict: bool, policy: NoisePolicy) -> Iterator[Finding]:
    for pattern in kernel_patterns():
        lines = (noise.kernel_log or {}).get(pattern.name)
        if lines:
            invalidates = strict or (pattern.biases_comparison and policy != "note")
            weight, rule = "INVALID" if invalidates else "noise", f"kernel-log {pattern.name}"
            text = f"the kernel's log, {pattern.name}: {lines[-1]}"
            yield limit_finding(rule, text, len(lines), 0, "lines", weight=weight)


def _paused(noise: HostNoise, limit_ns: float) -> bool:
    """Whether pauses reach p99.9: one is longer than the limit, and they are a part of the time."""
    longest_ns = noise.longest_pause_ns or 0
    return longest_ns > limit_ns and noise.paused_ns > _PAUSED_PART * noise.window_ns


def _pause_limit_ns(measure: Done) -> float:
    return _PAUSE_SHARE * response_percentile_ns(measure, 99.9)


def _pause_findings(
    noise: HostNoise, measure: Done, load: Load, policy: NoisePolicy
) -> Iterator[Finding]:
    """Findings about pauses: a sleeping thread woke late, so p99.9 includes late wake-ups."""
    limit_ns = _pause_limit_ns(measure)
    if _paused(noise, limit_ns) and (load.schedule != "closed" or policy == "refuse"):
        longest_ns = noise.longest_pause_ns or 0
        weight = "INVALID" if policy == "refuse" else "noise"
        text = f"the machine paused for up to {longest_ns / 1e6:.1f} ms, allowed "
        text += f"{limit_ns / 1e6:.2f} ms"
        yield limit_finding("pauses", text, longest_ns, limit_ns, "ns", weight=weight)


def _clock_findings(noise: HostNoise) -> Iterator[Finding]:
    """A step of the wall clock. Times are from CLOCK_MONOTONIC, so it only affects log times."""
    step_ns = noise.clock_step_ns or 0
    limit_ns = _SLEW_NS + _SLEW_PART * noise.window_ns
    if abs(step_ns) > limit_ns:
        text = "the wall clock was set in the window; no measured time depends on it"
        yield limit_finding("clock-step", text, step_ns, limit_ns, "ns", weight="note")
