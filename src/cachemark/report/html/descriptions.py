"""A workload, a load and a machine in words."""

from cachemark.analysis.number_format import count_of, counted, size, spread
from cachemark.model.experiment import Load, Workload
from cachemark.report.model import Report


def workload(of: Workload) -> str:
    """Such as: 9 get : 1 set; 2,000 keys of 20 bytes, zipf:0.99; values of 100 bytes."""
    described = [_operations(of), _keys(of), f"values of {spread(of.values.size)} bytes"]
    parts = [f"the trace {of.trace}"] if of.trace else described
    if of.hit_ratio is not None:
        parts.append(f"{of.hit_ratio:.1%} of the reads find something")
    if of.fill_percent is not None:
        parts.append(f"until the server is {of.fill_percent:g} % full")
    elif of.ops is not None:
        parts.append(f"{of.ops:,} operations")
    return "; ".join(parts)


def _operations(of: Workload) -> str:
    if of.sequence:
        steps = ", ".join(of.sequence[:6])
        more = f" and {len(of.sequence) - 6} more" if len(of.sequence) > 6 else ""
        return f"the sequence {steps}{more}"
    if len(of.mix) == 1:
        return f"only {next(iter(of.mix))}"
    weights = [f"{weight:g} {kind}" for kind, weight in of.mix.items()]
    return ", then ".join(of.mix) if of.order == "phases" else " : ".join(weights)


def _keys(of: Workload) -> str:
    keys = of.keys
    count = "one key" if keys.count == 1 else f"{keys.count:,} keys"
    if keys.names:
        return f"keys {', '.join(keys.names[:4])}{' …' if len(keys.names) > 4 else ''}"
    form = f"like {keys.pattern}" if keys.pattern else f"of {spread(keys.length)} bytes"
    return f"{count} {form}" + ("" if keys.count == 1 else f", {keys.distribution}")


def load(of: Load) -> str:
    """Such as: closed loop, 4 callers with 4 connections."""
    callers = of.processes * of.threads
    connections = of.processes * (of.connections or of.threads)
    if of.schedule == "closed":
        parts = ["closed loop", count_of(callers, "caller")]
        if of.think:
            parts.append(f"thinking {of.think}")
    else:
        rate = f", {counted(round(of.rate))} operations/s" if of.rate else ""
        parts = [f"open loop, {of.schedule}{rate}"]
    parts.append(count_of(connections, "connection"))
    if of.processes > 1:
        parts.append(f"{of.processes} processes")
    if of.depth > 1:
        parts.append(f"{of.depth} outstanding on each")
    if of.hosts:
        parts.append(f"on each of {count_of(of.hosts, 'host')}")
    if of.wire != "own":
        parts.append(f"{of.wire} protocol")
    return ", ".join(parts)


def environment(report: Report) -> list[tuple[str, str]]:
    """The machine and the software, one line for each fact that could be read."""
    header = report.header
    host, experiment = header.host, header.experiment
    pairs = [
        ("CPU", host.cpu_model),
        ("CPUs", f"{len(host.usable_cpus)} usable of {host.cpus}"),
        ("Memory", size(host.memory_bytes) if host.memory_bytes else ""),
        ("Machine", "virtual" if host.hypervisor else "no hypervisor seen"),
        ("System", f"{host.system}, Linux {host.kernel}".removeprefix(", ")),
        ("Frequency governor", host.governor or "not readable"),
        ("Turbo", host.turbo or "not readable"),
        ("Clock", host.clocksource),
        ("Load at the start", f"{host.load_1min:.2f}"),
        ("Swap in use", size(host.swap_used_bytes) if host.swap_used_bytes else "none"),
        (
            "CPU placement",
            f"server {experiment.placement.server}, worker {experiment.placement.worker}",
        ),
        ("Idle CPUs", "kept awake" if experiment.awake else ""),
        ("cachemark", f"{header.cachemark}, Python {host.python}"),
        ("Engine", host.engine),
        *[(name, version) for name, version in host.tools.items()],
        *[
            (f"Mitigation: {name}", text.removeprefix("Mitigation: "))
            for name, text in host.mitigations.items()
        ],
    ]
    return [(name, text) for name, text in pairs if text]


def code_parts(text: str) -> list[tuple[str, bool]]:
    """Split text at `code`: the parts, each with whether it is code."""
    return [(part, bool(odd % 2)) for odd, part in enumerate(text.split("`")) if part]
