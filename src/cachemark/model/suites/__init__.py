"""The suites: experiments that ship with cachemark, each a TOML file in this folder.

The table `quick` of a suite defines its small grid.
"""

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

import msgspec

from cachemark.model import experiment_file
from cachemark.model.errors import UsageError, similar_name
from cachemark.model.experiment import Experiment, QuickGrid, Workload
from cachemark.model.experiment_checks import check
from cachemark.model.work_length import scaled

# The suite that options change if the command line names no experiment.
BASE = "quick"


def names() -> list[str]:
    """The names of all suites."""
    files = (entry.name for entry in resources.files(__name__).iterdir())
    stems = (name.removesuffix(".toml") for name in files if name.endswith(".toml"))
    return sorted(stems)


def find(name: str, *, quick: bool = False) -> Experiment:
    """The suite of that name, or the experiment in that file. Raises UsageError."""
    if name.endswith(".toml") or "/" in name:
        if quick:
            raise UsageError("--quick is for suites", "remove it, or reduce the grid in the file")
        return experiment_file.load(Path(name))
    known = names()
    if name not in known:
        raise UsageError(
            f"no suite {name!r}",
            f"{similar_name(name, known)}suites: {', '.join(known)}; or name a file "
            "that ends .toml",
        )
    whole = experiment_file.parse(
        (resources.files(__name__) / f"{name}.toml").read_text(encoding="utf-8"), f"suite {name}"
    )
    if not quick:
        return whole
    if whole.quick is None:
        raise UsageError(f"suite {name!r} has no small grid", "remove --quick")
    return shortened(whole, whole.quick)


def shortened(whole: Experiment, quick: QuickGrid) -> Experiment:
    """The experiment, reduced to its small grid."""
    clients = whole.clients if quick.clients is None else quick.clients
    small = msgspec.structs.replace(
        whole,
        blocks=quick.blocks,
        until_valid=None if whole.until_valid is None else quick.blocks,
        clients=clients,
        twice=whole.twice if whole.twice in clients else "",
        in_process=whole.in_process if quick.in_process is None else quick.in_process,
        servers=whole.servers if quick.servers is None else quick.servers,
        workloads=[
            _reduced(workload, quick)
            for workload in whole.workloads
            if quick.workloads is None or workload.name in quick.workloads
        ],
        loads=[load for load in whole.loads if quick.loads is None or load.name in quick.loads],
        timing=quick.timing or whole.timing,
        rounds=quick.rounds or whole.rounds,
        quick=None,
    )
    check(small, f"suite {whole.name}, its quick grid")
    return small


def _reduced(workload: Workload, quick: QuickGrid) -> Workload:
    loads = quick.loads_of.get(workload.name, workload.loads)
    if loads is not None and quick.loads is not None:
        loads = [name for name in loads if name in quick.loads]
    return scaled(msgspec.structs.replace(workload, loads=loads), quick.scale)
