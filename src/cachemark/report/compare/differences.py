"""Differences between the conditions of two runs."""

from collections.abc import Sequence
from pathlib import Path

from cachemark.model.outcome import Outcome
from cachemark.model.run_header import HostFacts, RunHeader
from cachemark.report.compare.pairs import Pair
from cachemark.report.hosts import placement_text

_MACHINE = ("name", "cpu_model", "cpus", "usable_cpus", "memory_bytes", "hypervisor")
_SYSTEM = ("system", "kernel", "governor", "turbo", "clocksource", "mitigations", "python")


def machines_differ(before: HostFacts, after: HostFacts) -> bool:
    """Whether two runs were made on different machines."""
    return any(getattr(before, name) != getattr(after, name) for name in _MACHINE)


def differences(headers: tuple[RunHeader, RunHeader], pairs: Sequence[Pair]) -> list[str]:
    """Differences in machine, system, cachemark, placement, and versions."""
    hosts = headers[0].host, headers[1].host
    lines = [_line(name, *(getattr(host, name) for host in hosts)) for name in _MACHINE + _SYSTEM]
    lines.append(_line("cachemark", headers[0].cachemark, headers[1].cachemark))
    for name in ("server", "worker"):
        placed = [getattr(header.experiment.placement, name) for header in headers]
        lines.append(_line(f"CPUs of the {name}", placed[0], placed[1]))
    lines.append(_line("hosts", *(placement_text(header.hosts) for header in headers)))
    lines.append(_line("CPUs kept awake", *(header.experiment.awake for header in headers)))
    for pair in pairs:
        lines += _versions(pair)
    return list(dict.fromkeys(line for line in lines if line))


def _versions(pair: Pair) -> list[str]:
    before, after = pair.before[0][0], pair.after[0][0]
    client = _both(pair.baseline.client, pair.other.client)
    server = _both(pair.baseline.server, pair.other.server)
    ours = [_worker(before), _worker(after)]
    servers = [trial.server.version if trial.server else "" for trial in (before, after)]
    return [
        *(_line(f"{what} of {client}", ours[0][what], ours[1][what]) for what in ours[0]),
        _line(f"wire of {client}", before.wire, after.wire),
        _line(f"version of {server}", servers[0], servers[1]),
        *_binaries(before, after, {"server": server, "worker": client}),
    ]


def _both(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


def _binaries(before: Outcome, after: Outcome, named: dict[str, str]) -> list[str]:
    """Programs whose files differ, even if their versions agree. `named`: role → its name."""
    ours, theirs = (_hashes(trial) for trial in (before, after))
    return [
        _line(f"binary of {named.get(role, role)}", ours[role], theirs[role])
        for role in ours.keys() & theirs.keys()
    ]


def _hashes(trial: Outcome) -> dict[str, str]:
    by_role: dict[str, set[str]] = {}
    for binary in trial.binaries:
        role = binary.role if binary.role != "script" else Path(binary.path).name
        by_role.setdefault(role, set()).add(binary.sha256[:12])
    return {role: " ".join(sorted(hashes)) for role, hashes in sorted(by_role.items())}


def _worker(trial: Outcome) -> dict[str, str]:
    ready = trial.worker
    return {
        "version": ready.library_version if ready else "",
        "runtime": ready.runtime if ready else "",
    }


def _line(what: str, before: object, after: object) -> str:
    # A fact that an older cachemark did not note is no difference.
    known = before not in ("", {}) and after not in ("", {})
    return f"{what.replace('_', ' ')}: {before} → {after}" if known and before != after else ""
