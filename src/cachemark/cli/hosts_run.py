"""`cachemark run --hosts`: play with the agents of a hosts file."""

import shlex
from collections.abc import Callable
from pathlib import Path

import msgspec

from cachemark.cli.play import play_shown, say
from cachemark.model.errors import HostLostError, TrialError, UsageError
from cachemark.model.experiment import Experiment, Placement
from cachemark.model.hosts import Hosts
from cachemark.model.outcome import Outcome
from cachemark.model.plan import Plan
from cachemark.model.run_header import HostsOfRun
from cachemark.runs.agents.dask_settings import check_installed
from cachemark.runs.agents.hosts_file import load_hosts
from cachemark.runs.play import Job, new_job, resumed_job
from cachemark.runs.stage import Parties
from cachemark.runs.storage.store import Run


def for_hosts(experiment: Experiment, hosts: Hosts) -> Experiment:
    """The experiment for several hosts: in trials, unless it asks for rounds. Pure.

    Raises UsageError.
    """
    if experiment.placement != Placement():
        raise UsageError(
            f"{experiment.name}: its placement names the CPUs of one host",
            "with --hosts, write the `cpus` of each host into the hosts file",
        )
    if experiment.awake:
        raise UsageError(
            f"{experiment.name}: `awake` keeps the CPUs of one host awake",
            "with --hosts, leave it out",
        )
    warmed = [one.name for one in experiment.workloads if one.server_warmup_ops]
    if warmed:
        raise UsageError(
            f"{experiment.name}: workers of one host warm the server of {warmed[0]!r}",
            "with --hosts, leave server_warmup_ops out",
        )
    _check_generators(experiment, hosts)
    _check_number_of_hosts(experiment, hosts)
    if experiment.design == "rounds":
        return experiment
    return msgspec.structs.replace(experiment, design="trials")


def _check_generators(experiment: Experiment, hosts: Hosts) -> None:
    """Check that hosts have the role load if the load has a measuring client, and only then."""
    for load in experiment.loads:
        if load.measure is not None and not hosts.generators:
            raise UsageError(
                f"{experiment.name}: load {load.name!r} has a measuring client, and no host has "
                "the role load",
                'write roles = ["load"] for the hosts that make the load',
            )
        if load.measure is None and hosts.generators:
            raise UsageError(
                f"{experiment.name}: host {hosts.generators[0].name!r} has the role load, and load "
                f"{load.name!r} has no measuring client",
                "write measure = { rate = 1000 } into the load, or give the host the role client",
            )


def _check_number_of_hosts(experiment: Experiment, hosts: Hosts) -> None:
    """Refuse a load of more hosts than there are. Raises UsageError."""
    for load in experiment.loads:
        found = hosts.makers_of(load)
        if load.hosts and load.hosts > len(found):
            role = "load" if load.measure else "client"
            raise UsageError(
                f"{experiment.name}: load {load.name!r} is made by {load.hosts} hosts, and the "
                f"hosts file has {len(found)} with the role {role}",
                f"give more hosts the role {role}, or write a smaller number",
            )


def for_one_host(experiment: Experiment) -> Experiment:
    """The experiment for this host alone. Pure. Raises UsageError."""
    if load := next((load for load in experiment.loads if load.hosts), None):
        raise UsageError(
            f"{experiment.name}: load {load.name!r} says how many hosts make it",
            "play it with --hosts, or leave `hosts` out",
        )
    return experiment


def play_new(
    plan: Plan, parties: Parties, file: Path, out: Path, name: str = ""
) -> tuple[Run, list[Outcome]]:
    """Connect the hosts, compare their software, then play the plan over them."""
    return _play(file, lambda hosts: new_job(plan, parties, out, hosts, name=name))


def play_on(run: Run, parties: Parties, file: Path) -> list[Outcome]:
    """Play the rest of a run over hosts. Raises UsageError for other hosts."""

    def same_hosts(hosts: HostsOfRun) -> Job:
        before = run.header.hosts
        if before is None or _who(before) != _who(hosts):
            raise UsageError(
                f"{run.id} was played on other hosts, or with other roles",
                "continue it with the hosts file that it was started with",
            )
        return resumed_job(run, parties)

    return _play(file, same_hosts)[1]


def _play(file: Path, job_of: Callable[[HostsOfRun], Job]) -> tuple[Run, list[Outcome]]:
    check_installed()
    # Late, as Dask takes half a second to import, and only runs over hosts need it.
    from cachemark.runs.agents.check import require_fit  # noqa: PLC0415
    from cachemark.runs.agents.coordinator import coordinating  # noqa: PLC0415
    from cachemark.runs.agents.trial import HostsStage  # noqa: PLC0415

    hosts = load_hosts(file)
    with coordinating(hosts, file, announce=say) as coordinator:
        facts = require_fit(coordinator)
        job = job_of(HostsOfRun(plan=hosts, facts=facts))
        try:
            there = msgspec.structs.replace(job, stage=HostsStage(coordinator))
            return job.run, play_shown(there)
        except HostLostError as error:
            words = ["cachemark", "run", "--resume", str(job.run.folder), "--hosts", str(file)]
            text = f"{error.text}; what was played is kept: continue with {shlex.join(words)}"
            raise TrialError(text) from error


def _who(hosts: HostsOfRun) -> list[tuple[str, tuple[str, ...], str]]:
    """Names, roles and CPUs of the hosts, which must be the same when a run is continued."""
    return [(host.name, tuple(host.roles), host.cpus) for host in hosts.plan.hosts]
