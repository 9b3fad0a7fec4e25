"""Where a run does not see lost and stale writes, in words: for the plan and for reports. Pure."""

from cachemark.model.experiment import Experiment, Load

# Behind it, what came over one connection need not keep its order.
PROXY = "nutcracker"
# Only these reads are compared with the caller's last set.
_READS, _SETS = frozenset({"get", "gets", "gat", "mget"}), frozenset({"set", "set_noreply"})
_UNREAD = ": no get, gets, gat or mget reads what a set stored"
_WRITES = _SETS | {"add", "append", "cas", "fetch", "mset", "mset_noreply", "prepend", "replace"}


def no_generations(load: Load) -> str:
    """Why it is unknown in which order the operations of a load reach a key; empty if one can.

    What counts is the order in which one caller's own operations on a key reach its server.
    """
    if load.measure is not None:
        return "other clients make the load, and write the same keys"
    if load.connections is not None and load.connections > load.threads:
        return "a caller's operations go over several connections"
    if load.think is not None and load.depth > 1:
        return "operations on a connection have times to think of their own"
    return ""


def lines_about_order(experiment: Experiment) -> list[str]:
    """A line for each workload or load in which lost and stale writes are not seen."""
    works = [(one.name, one.kinds, bool(one.trace)) for one in experiment.workloads]
    seen = {name for name, of, trace in works if trace or (of & _READS and of & _SETS)}
    unread = ", ".join(name for name, of, _ in works if of & _WRITES and name not in seen)
    told = [(unread, _UNREAD)] if unread else []
    if seen:
        told += [(load.name, _not_seen(load, experiment)) for load in experiment.loads]
    return [f"{name}: lost and stale writes are not seen{text}" for name, text in told if text]


def _not_seen(load: Load, experiment: Experiment) -> str:
    if why := no_generations(load):
        return f": {why}"
    deep = load.depth > 1
    if not deep and not any("set_noreply" in one.kinds for one in experiment.workloads):
        return ""
    proxy = deep and any(server.startswith(f"{PROXY}:") for server in experiment.servers)
    through = f", and through {PROXY}" if proxy else ""
    return f" with clients that do not claim `in_order`{through}"
