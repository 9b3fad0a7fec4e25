"""The options of `run` and `new` that change an experiment; `--set` reaches all other settings."""

from dataclasses import dataclass, fields
from typing import Annotated

from cyclopts import Group, Parameter

from cachemark.cli import completers
from cachemark.cli.overrides import Overrides, with_settings
from cachemark.cli.set_option import set_paths
from cachemark.model.errors import UsageError
from cachemark.model.units import parse_ms

_GRID = Group("What is compared", sort_key=1)
_WORK = Group("The work and its load", sort_key=2)
PLAY = Group("Where and how it is played", sort_key=3)


def _repeated(completer: completers.Completer, what: str) -> Parameter:
    return completers.repeated(completer, what, group=_GRID)


def _work(text: str) -> Parameter:
    return Parameter(group=_WORK, help=text)


@dataclass(frozen=True)
class RunOptions:
    """Options that replace settings of the experiment."""

    client: Annotated[
        tuple[str, ...],
        _repeated(completers.clients, "use this client instead, or all that match 'go/*'"),
    ] = ()
    server: Annotated[
        tuple[str, ...],
        _repeated(completers.servers, "use this server instead; +SERVER: use it too"),
    ] = ()
    round_trip: Annotated[
        str | None,
        Parameter(group=_GRID, help="a distance to every server: a proxy adds 0.5ms, 10ms …"),
    ] = None
    workload: Annotated[
        tuple[str, ...],
        _repeated(completers.in_suite("workloads"), "only this workload of the experiment"),
    ] = ()
    load: Annotated[
        tuple[str, ...], _repeated(completers.in_suite("loads"), "only this load of the experiment")
    ] = ()
    quick: Annotated[bool, Parameter(group=_GRID, help="the suite's small grid")] = False
    blocks: Annotated[
        int | None,
        Parameter(group=_GRID, help="repetitions of the grid; rounds: the most sittings"),
    ] = None
    max: Annotated[
        str | None,
        Parameter(
            group=_GRID, help="rounds: begin no sitting that would end after this time, such as 10m"
        ),
    ] = None
    mix: Annotated[str | None, _work("operations and their weights: get=95,set=5")] = None
    size: Annotated[
        str | None, _work("size of a value: 100, 1k..64k, lognormal:300:1; of parts: a;b")
    ] = None
    keys: Annotated[str | None, _work("number of keys: 10k, 1M")] = None
    trace: Annotated[str | None, _work("a file with recorded operations")] = None
    rate: Annotated[str | None, _work("open loop: operations per second, such as 20k")] = None
    search: Annotated[
        str | None, _work("find the highest rate that meets an objective, such as 'p99<1ms'")
    ] = None
    threads: Annotated[
        tuple[int, ...], _work("number of callers; may be repeated, one load for each")
    ] = ()
    ops: Annotated[
        int | None, _work("play this number of operations in the window of each trial")
    ] = None
    measure_ms: Annotated[
        int | None, _work("length of the measured window in ms, also in place of a suite's --ops")
    ] = None
    # Options of `drive`, understood here too; the help has one way for each.
    duration: Annotated[str | None, Parameter(group=_WORK, show=False)] = None
    connections: Annotated[int | None, Parameter(group=_WORK, show=False)] = None
    depth: Annotated[int | None, Parameter(group=_WORK, show=False)] = None
    set: Annotated[
        tuple[str, ...],
        Parameter(
            group=_WORK,
            completer=set_paths,
            help="any setting of an experiment file (docs/experiment.md), such as "
            "loads.wire=meta or timing.warmup_ms=0 (may be repeated)",
        ),
    ] = ()

    @classmethod
    def names(cls) -> list[str]:
        """The names of the options, without dashes in front."""
        return [field.name.replace("_", "-") for field in fields(cls)]

    @property
    def are_given(self) -> bool:
        """Whether any option is given."""
        return self != RunOptions()

    def overrides(self) -> Overrides:
        """All typed settings. Raises UsageError."""
        typed = {
            field.name: value
            for field in fields(self)
            if field.name != "set" and (value := getattr(self, field.name)) != field.default
        }
        if text := typed.pop("duration", None):
            if "measure_ms" in typed:
                raise UsageError("--duration and --measure-ms are one setting", "leave out one")
            typed["measure_ms"] = parse_ms(text, "--duration")
        added = tuple(name[1:] for name in self.server if name.startswith("+"))
        if added:
            typed |= {"server": tuple(name for name in self.server if not name.startswith("+"))}
            typed |= {"add_server": added}
        return with_settings(typed, self.set)
