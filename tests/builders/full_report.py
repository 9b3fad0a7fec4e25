"""A report made by hand that has everything a page can show: several servers, loads, verdicts."""

import msgspec

from cachemark.model.audit import Audit, Level
from cachemark.model.experiment import Load, Workload
from cachemark.model.outcome import Outcome, Sample
from cachemark.report.build import build
from cachemark.report.model import Report
from tests.builders.outcomes import at, experiment, header, measured, numbered

CLIENTS = {"native": 3000, "python/fast": 2000, "python/slow": 1500, "python/null": 4000}
SERVERS = {"embedded": 1.0, "memcached:memory=64": 1.2}
LOADS = [Load(name="one", threads=1), Load(name="four", threads=4)]
# Texts of a worker or a server are shown, and never obeyed.
HOSTILE = "<img src='http://example.invalid/x.png' onerror='document.title=1'>"
_START = "2026-01-02T03:04:05.000+00:00"
_START_NS = 1_767_323_045 * 10**9


def report(servers: dict[str, float] = SERVERS) -> Report:
    """As a run of the suite emcache would have it, as that has published figures too.

    `servers` says how many times as fast the clients are against each.
    """
    workload = Workload(name="get", mix={"get": 1})
    grid = msgspec.structs.replace(
        experiment(list(CLIENTS)),
        name="emcache",
        servers=list(servers),
        workloads=[workload],
        loads=LOADS,
        analysis="One paragraph with `code` in it.\n\nAnother one.",
    )
    made = [
        _outcome(client, server, load, block, times)
        for block in range(5)
        for client in CLIENTS
        for server, times in servers.items()
        for load in LOADS
    ]
    made[3] = msgspec.structs.replace(made[3], verdict="INVALID", reasons=[HOSTILE])
    gone = msgspec.structs.replace(
        _outcome("python/slow", next(iter(servers)), LOADS[0], 0, 1),
        state="unsupported",
        verdict=None,
        measure=None,
        samples=[],
        reason=f"python/gone: {HOSTILE}",
        remedy="cachemark setup python",
    )
    outcomes = numbered([*made, at(gone, client="python/gone")])
    level = Level(
        factor="wire", level="text", subject="native", answer="proved", evidence="first byte 0x67"
    )
    return build(header(grid), outcomes, Audit(levels=[level]))


def _outcome(client: str, server: str, load: Load, block: int, times: float) -> Outcome:
    rate = round(CLIENTS[client] * times * (1 + 0.5 * (load.threads > 1)))
    made = at(measured(client, block, rate), server=server, workload="get", load=load.name)
    return msgspec.structs.replace(
        made, load=load, measure_started_at=_START, samples=samples(rate, 4)
    )


def samples(rate: int, seconds: int) -> list[Sample]:
    """One a second at a steady rate, the server growing by 1 MB in each."""
    return [
        Sample(
            unix_ns=_START_NS + second * 10**9,
            ops=rate * second,
            ops_unix_ns=_START_NS + second * 10**9,
            cpu_ns=5 * 10**8 * second,
            rss_bytes=10**6 * (1 + second),
        )
        for second in range(1, seconds + 1)
    ]
