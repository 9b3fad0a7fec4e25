"""Checks that the types of an experiment cannot express, such as of names listed twice."""

from cachemark.model.errors import UsageError
from cachemark.model.experiment import Experiment, Load, Workload
from cachemark.model.plan import uses_rounds
from cachemark.model.search_steps import parse_objective
from cachemark.model.work_length import plays_to_an_end

# An open loop waits for its outstanding operations at the end of each slice.
_MIN_OPEN_SLICE_MS = 1000
MAX_CLOSED_SLICE_MS = 500
_AS_TRIALS = 'set design = "trials" (--set design=trials)'


def check(experiment: Experiment, where: str) -> None:
    """Check what types cannot express, such as duplicate names. Raises UsageError."""
    for what, names in (
        ("workload", [w.name for w in experiment.workloads]),
        ("load", [a.name for a in experiment.loads]),
        ("client", [*experiment.clients, *experiment.in_process]),
        ("server", experiment.servers),
    ):
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise UsageError(f"{where}: {what} {twice[0]!r} is listed twice", "list it once")
    _check_clients_and_servers(experiment, where)
    for load_ in experiment.loads:
        _check_load(load_, where, searched=bool(experiment.search))
    for workload in experiment.workloads:
        _check_workload(workload, where)
    _check_search(experiment, where)
    _check_measuring(experiment, where)
    _check_rounds(experiment, where)
    _check_replays(experiment, where)
    known = {load_.name for load_ in experiment.loads}
    for workload in experiment.workloads:
        unknown = sorted(set(workload.loads or []) - known)
        if unknown:
            raise UsageError(
                f"{where}: workload {workload.name!r}: no load {unknown[0]!r}",
                f"known loads: {', '.join(sorted(known))}",
            )


def _check_clients_and_servers(experiment: Experiment, where: str) -> None:
    if experiment.twice and experiment.twice not in experiment.clients:
        raise UsageError(
            f"{where}: twice = {experiment.twice!r} is not one of the clients",
            f"one of: {', '.join(experiment.clients)}",
        )
    if not experiment.clients and not experiment.in_process:
        raise UsageError(f"{where}: no client", 'add clients = ["native"]')
    if experiment.clients and not experiment.servers:
        raise UsageError(f"{where}: no server", 'add servers = ["embedded"]')


def _check_rounds(experiment: Experiment, where: str) -> None:
    """Refuse rounds of what can only be played as trials."""
    if experiment.design != "rounds":
        return
    if experiment.search:
        raise UsageError(
            f"{where}: a search plays trials, one rate after the other, not rounds",
            'leave out design = "rounds"',
        )
    beside = next((load for load in experiment.loads if load.measure is not None), None)
    if beside is not None:
        place = f"{where}: load {beside.name!r}: a measuring client"
        raise UsageError(f"{place} plays trials, not rounds", _AS_TRIALS)
    _check_endless(experiment, where, "rounds need", _AS_TRIALS)
    slice_ms = experiment.rounds.slice_ms
    opened = next((load for load in experiment.loads if load.schedule != "closed"), None)
    if opened is not None and slice_ms < _MIN_OPEN_SLICE_MS:
        raise UsageError(
            f"{where}: load {opened.name!r}: an open loop needs slices of {_MIN_OPEN_SLICE_MS} ms "
            f"or more, not {slice_ms:g} ms",
            _AS_TRIALS,
        )
    if opened is None and slice_ms > MAX_CLOSED_SLICE_MS:
        raise UsageError(
            f"{where}: slices of {slice_ms:g} ms; a closed loop takes at most "
            f"{MAX_CLOSED_SLICE_MS} ms",
            "lower slice_ms",
        )


def _check_endless(experiment: Experiment, where: str, need: str, remedy: str = "") -> None:
    whole = next(filter(plays_to_an_end, experiment.workloads), None)
    if whole is not None:
        raise UsageError(
            f"{where}: workload {whole.name!r}: {need} a workload without an end, "
            "not a fill, a trace or a number of operations",
            remedy,
        )


def _check_replays(experiment: Experiment, where: str) -> None:
    """Only trials are replayed; each block then has a valid one of each cell."""
    wanted = experiment.until_valid
    if wanted is None:
        return
    if wanted != experiment.blocks:
        raise UsageError(
            f"{where}: until_valid = {wanted}, but blocks = {experiment.blocks}",
            "leave out blocks: until_valid sets their number",
        )
    if experiment.search:
        raise UsageError(f"{where}: a search repeats trials by itself", "leave out until_valid")
    if uses_rounds(experiment):
        raise UsageError(
            f"{where}: until_valid replays trials, but these cells are played in rounds", _AS_TRIALS
        )


def _check_search(experiment: Experiment, where: str) -> None:
    """A search tries rates: its loads are open loops without one, played as trials."""
    if not experiment.search:
        return
    parse_objective(experiment.search, f"{where}: search")
    _check_endless(experiment, where, "a search needs")
    for load_ in experiment.loads:
        if load_.schedule == "closed" or load_.schedule.startswith("replay"):
            raise UsageError(
                f"{where}: load {load_.name!r}: a search tries rates, but a closed loop or a "
                "replay has no rate",
                "use schedule poisson, uniform, gpareto or bursts",
            )
        if load_.rate is not None:
            raise UsageError(
                f"{where}: load {load_.name!r}: a search finds the rate itself", "leave out rate"
            )


def _check_measuring(experiment: Experiment, where: str) -> None:
    """A measuring client needs a server, and a window that ends by time."""
    beside = next((load for load in experiment.loads if load.measure is not None), None)
    if beside is None:
        return
    place = f"{where}: load {beside.name!r}: a measuring client"
    if experiment.in_process:
        raise UsageError(f"{place} needs a server", "leave out in_process")
    for workload in experiment.workloads:
        if plays_to_an_end(workload) or workload.server_warmup_ops:
            raise UsageError(
                f"{place} needs a window that ends by time, and workload {workload.name!r} "
                "has its own end or its own warm-up of the server",
                "leave out ops, passes, fill_percent, trace and server_warmup_ops",
            )


def _check_workload(workload: Workload, where: str) -> None:
    place = f"{where}: workload {workload.name!r}"
    if workload.mix and workload.sequence:
        raise UsageError(f"{place}: give a mix or a sequence, not both")
    if workload.trace and (workload.mix or workload.sequence or workload.preset):
        raise UsageError(
            f"{place}: a trace has its own operations", "remove mix, sequence and preset"
        )
    if not (workload.mix or workload.sequence or workload.preset or workload.trace):
        raise UsageError(f"{place}: it needs a mix, a sequence, a preset or a trace")
    if workload.passes is not None and (
        workload.ops is not None or workload.fill_percent is not None
    ):
        raise UsageError(f"{place}: give one of passes, ops and fill_percent")
    if workload.hit_ratio is not None and workload.prefill != 1.0:
        raise UsageError(f"{place}: hit_ratio sets the prefill itself", "remove prefill")
    if workload.sequence and workload.order != "mixed":
        raise UsageError(f"{place}: a sequence has its own order", "remove order")
    if workload.key_step and not workload.sequence:
        raise UsageError(f"{place}: key_step needs a sequence", "remove key_step")


def _check_load(load_: Load, where: str, *, searched: bool) -> None:
    place = f"{where}: load {load_.name!r}"
    if load_.schedule == "closed" and load_.rate is not None:
        raise UsageError(
            f"{place}: a closed loop has no rate",
            'set schedule = "uniform" or "poisson", or remove the rate',
        )
    if load_.schedule != "closed" and load_.think is not None:
        raise UsageError(f"{place}: think time is for closed loops only", "remove think")
    if load_.refill == "all" and (
        load_.depth == 1 or load_.schedule != "closed" or load_.think is not None
    ):
        raise UsageError(
            f'{place}: refill "all" is for a closed loop with a depth above 1 and no time to think',
            "remove refill",
        )
    replay = load_.schedule.startswith("replay")
    if replay and load_.rate is not None:
        raise UsageError(f"{place}: a replay uses the trace's own rate", "remove rate")
    needs_rate = load_.schedule != "closed" and not replay and not searched
    if needs_rate and load_.rate is None:
        raise UsageError(
            f"{place}: schedule {load_.schedule!r} needs a rate", "add rate = operations per second"
        )
    connections = load_.connections or load_.threads
    if connections % load_.threads and load_.threads % connections:
        raise UsageError(
            f"{place}: {load_.connections} connections cannot be shared by {load_.threads} threads",
            "make connections a multiple or a divisor of threads, or leave this load out",
        )
