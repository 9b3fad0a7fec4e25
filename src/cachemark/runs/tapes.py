"""Tapes for trials. The engine writes each tape once, and all clients of a block play it."""

import re
import subprocess
from pathlib import Path

import msgspec

from cachemark.model.errors import UsageError, engine_error_text
from cachemark.model.experiment import Keys, Load, Timing, Workload
from cachemark.model.plan import Plan
from cachemark.model.tape_facts import KeyReuse, TapeFacts, TraceFacts
from cachemark.model.work_length import chooses_records, records_of, window_ops

# The engine's words about a file; any other error is about a setting.
_UNWRITABLE = "cannot be written"


class DataSet(msgspec.Struct, frozen=True, kw_only=True):
    """The items that a server holds at most, and the bytes of their keys and values."""

    items: int
    data_bytes: int


class Generations(msgspec.Struct, frozen=True, kw_only=True):
    """Values that show which write a read brought: for `callers` callers in all.

    `shared_server`: others write the same keys by the same tape.
    """

    lanes: int
    shared_server: bool = False


class Tape(msgspec.Struct, frozen=True, kw_only=True):
    """A tape on disk, and its facts for the outcome."""

    path: Path
    facts: TapeFacts
    data: DataSet
    generations: Generations | None = None


class _WriteResult(msgspec.Struct, frozen=True, kw_only=True):
    sha256: str
    ops: int
    keys: int
    period_ns: int
    stored_items: int
    stored_key_bytes: int
    stored_value_bytes: int
    reuse: KeyReuse
    trace: TraceFacts | None = None


class TapeCache:
    """The tapes of the current block, in a folder. Tapes of earlier blocks are deleted."""

    def __init__(self, engine: str, folder: Path) -> None:
        self._engine = engine
        self._folder = folder
        self._tapes: dict[tuple[str, ...], Tape] = {}
        self._seed: int | None = None

    def get(
        self,
        workload: Workload,
        load: Load,
        timing: Timing,
        seed: int,
        generations: Generations | None = None,
    ) -> Tape:
        """The tape of a cell and seed, written at first use. Raises UsageError."""
        if seed != self._seed:
            self._clear()
            self._seed = seed
        arguments = tape_arguments(workload, load, timing, seed) + _generations(generations)
        tape = self._tapes.get(tuple(arguments))
        if tape is None:
            place = f"workload {workload.name!r}, load {load.name!r}"
            written = self._write(arguments, seed, place)
            tape = msgspec.structs.replace(written, generations=generations)
            self._tapes[tuple(arguments)] = tape
        return tape

    def _write(self, arguments: list[str], seed: int, place: str) -> Tape:
        path = self._folder / f"{len(self._tapes)}-{seed}.tape"
        command = [self._engine, "tape", "write", "--out", str(path), *arguments]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode:
            text = engine_error_text(ended.stderr)
            raise UsageError(
                f"{place}: {_setting_error(text)}",
                "make room there, or let TMPDIR name another folder"
                if _UNWRITABLE in text
                else "docs/experiment.md has the grammar of every setting",
            )
        written = msgspec.json.decode(ended.stdout, type=_WriteResult)
        facts = TapeFacts(
            seed=seed,
            sha256=written.sha256,
            ops=written.ops,
            keys=written.keys,
            period_ns=written.period_ns,
            arguments=arguments,
            reuse=written.reuse,
            trace=written.trace,
        )
        data = DataSet(
            items=written.stored_items,
            data_bytes=written.stored_key_bytes + written.stored_value_bytes,
        )
        return Tape(path=path, facts=facts, data=data)

    def check(self, plan: Plan) -> dict[tuple[str, str], Tape]:
        """Write the first tape of each cell, to find errors early. Raises UsageError.

        Returns the tapes by workload and load.
        """
        tapes: dict[tuple[str, str], Tape] = {}
        for trial in plan.trials[:1]:
            for cell in plan.playable:
                workload, load = plan.workload(cell), plan.load(cell)
                tape = self.get(workload, load, plan.experiment.timing, trial.tape_seed)
                tapes[cell.workload, cell.load] = tape
        return tapes

    def _clear(self) -> None:
        for tape in self._tapes.values():
            tape.path.unlink(missing_ok=True)
        self._tapes.clear()


def tape_arguments(workload: Workload, load: Load, timing: Timing, seed: int) -> list[str]:
    """The engine's arguments for the tape of a workload and a load. Pure."""
    if workload.trace:
        return ["--seed", str(seed), *_trace(workload), *_schedule(load, timing)]
    keys, values = workload.keys, workload.values
    arguments = ["--seed", str(seed), "--distribution", keys.distribution, *_key_table(keys)]
    arguments += ["--size", values.size, "--compressibility", f"{values.compressibility:g}"]
    arguments += _order(workload)
    arguments += ["--run", str(workload.run)]
    if workload.hit_ratio is None:
        arguments += ["--prefill", f"{workload.prefill:g}"]
    else:
        arguments += ["--hit-ratio", f"{workload.hit_ratio:g}"]
    arguments += ["--exptime", str(workload.exptime_s)]
    return [*arguments, *_schedule(load, timing), *_length(workload, load, timing)]


def _generations(wanted: Generations | None) -> list[str]:
    if wanted is None:
        return []
    return ["--generations", str(wanted.lanes), *["--shared-server"] * wanted.shared_server]


def _length(workload: Workload, load: Load, timing: Timing) -> list[str]:
    """The length of a closed loop's tape; an open loop's length follows from its schedule."""
    if load.schedule != "closed":
        return []
    if chooses_records(workload):
        return ["--window-ops", str(window_ops(workload, load, timing))]
    return ["--ops", str(records_of(workload))]


def _schedule(load: Load, timing: Timing) -> list[str]:
    if load.schedule == "closed":
        return ["--think", load.think] if load.think else []
    arguments = ["--schedule", load.schedule]
    if load.rate is None:
        return arguments
    return [*arguments, "--rate", f"{load.rate:.17g}", "--duration", f"{timing.measure_ms}ms"]


def _trace(workload: Workload) -> list[str]:
    arguments = ["--trace", str(workload.trace), "--ops", str(records_of(workload))]
    arguments += ["--compressibility", f"{workload.values.compressibility:g}"]
    if workload.trace_format:
        arguments += ["--trace-format", workload.trace_format]
    if workload.trace_columns:
        arguments += ["--columns", workload.trace_columns]
    arguments += ["--gets", workload.trace_gets, "--left-out", f"{workload.trace_left_out:g}"]
    return [*arguments, "--prefill", f"{workload.prefill:g}"]


def _key_table(keys: Keys) -> list[str]:
    arguments = ["--counters", str(keys.counters)]
    if keys.names:
        return [*arguments, "--key-names", ",".join(keys.names)]
    shape = ["--key-pattern", keys.pattern] if keys.pattern else ["--key-length", keys.length]
    return [*arguments, "--keys", str(keys.count), *shape]


def _order(workload: Workload) -> list[str]:
    if workload.sequence:
        steps = " ".join(workload.sequence)
        return ["--sequence", steps, "--key-step", str(workload.key_step)]
    mix = ",".join(f"{kind}={weight:g}" for kind, weight in workload.mix.items())
    return ["--mix", mix, "--order", workload.order]


# How the engine's parser of options begins; a file has settings.
_OPTION_ERROR = re.compile(r"invalid value '.*?' for '--([\w-]+)[^']*'")


def _setting_error(text: str) -> str:
    """An error of the engine in the words of an experiment file.

    >>> _setting_error("invalid value '4q' for '--size <SIZE>': write 100")
    'size: write 100'
    """
    return _OPTION_ERROR.sub(r"\1", text)
