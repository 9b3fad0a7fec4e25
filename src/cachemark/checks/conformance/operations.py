"""The cases that are data: a tape, how to play it, and the counts of client and server."""

from functools import partial
from pathlib import Path

import msgspec

from cachemark.checks.conformance.cases import (
    TEST_DOUBLE,
    ConformanceCase,
    claiming,
    has_one_caller,
)
from cachemark.checks.conformance.worker_driver import (
    NotApplicableError,
    WorkerDriver,
    expect,
    expect_equal,
)
from cachemark.endpoints.servers import RunningServer
from cachemark.model import histogram
from cachemark.model.protocol import Done, Operation, Prepare, Ready, RunRequest, Unsupported
from cachemark.model.shipped_rows import shipped_rows

_FIGURES = ("ok", "hits", "misses", "not_stored", "wrong_values", "keys")


class OperationCase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A case of conformance/worker; operations.toml explains the fields."""

    name: str
    tape: list[str]
    ops: int
    expect: dict[str, dict[str, int]] = {}
    stats: dict[str, int] = {}
    barriers: int = 0
    callers: int = 1
    needs: str = ""
    segment: tuple[int, int] = (0, 1)
    prefilled: int | None = None

    def argument(self, name: str, default: str) -> str:
        """An argument of the tape."""
        return self.tape[self.tape.index(name) + 1] if name in self.tape else default

    def kinds(self) -> set[str]:
        """The kinds of operation on the tape."""
        steps = self.argument("--sequence", "").split() or self.argument("--mix", "").split(",")
        return {step.partition("=")[0].partition("@")[0] for step in steps}

    def as_conformance_case(self) -> ConformanceCase:
        """The case for workers that claim its kinds. Without `needs`, others must refuse it."""
        needed = claiming(*filter(None, [self.needs, *sorted(self.kinds())]))
        play = partial(check_case, self)
        return ConformanceCase(
            play, needed, in_process=True, must_refuse=not self.needs, callers=self.callers
        )


def read_cases(folder: Path) -> list[OperationCase]:
    """Every case of the data files."""
    paths = sorted(folder.glob("worker/*.toml"))
    return [case for path in paths for case in shipped_rows(path, "case", OperationCase)]


def check_case(case: OperationCase, driver: WorkerDriver, wire: str, server: RunningServer) -> None:
    """Play a case on an empty server. Raises CaseFailedError, NotApplicableError."""
    _prepare(case, driver, wire, server)
    _check_prefill(case, driver.play(RunRequest(phase="prefill")))
    before = server.stats()
    done = driver.play(RunRequest(phase="measure", ops=case.ops))
    after = server.stats()
    if before:
        for name, count in case.stats.items():
            expect_equal(int(after[name]) - int(before[name]), count, f"the server's {name}")
    expect_equal(sum(op.ok for op in done.operations.values()), case.ops, "ok of all")
    for kind, expected in case.expect.items():
        expect(kind in done.operations, f"no {kind} in done")
        _check_operation(kind, done.operations[kind], expected)
    expect_equal(set(done.operations), case.kinds(), "the kinds in done")
    _check_window(case, driver, done)


def _prepare(case: OperationCase, driver: WorkerDriver, wire: str, server: RunningServer) -> None:
    """Prepare. The worker must refuse all kinds that it does not claim."""
    ready = driver.ready
    threads = case.callers if driver.can("threads") else 1
    request = Prepare(
        servers=server.addresses,
        wire=wire,
        threads=threads,
        connections=case.callers,
        tape=str(driver.tape(*case.tape)),
        segment=case.segment,
        options=driver.spec.options,
    )
    answer = driver.ask(request)
    lacks = case.kinds() - set(ready.capabilities)
    if isinstance(answer, Ready):
        expect(not lacks, f"it plays {lacks}, which it does not claim")
        return
    expect(isinstance(answer, Unsupported) and answer.reason, f"prepare was answered by {answer}")
    alone = case.callers > 1 and has_one_caller(driver.spec.client, ready)
    expect(
        lacks or alone or ready.client == TEST_DOUBLE or _on_another_wire(driver, request),
        f"{answer}, though it claims the kind",
    )
    raise NotApplicableError(getattr(answer, "reason", ""))


def _on_another_wire(driver: WorkerDriver, request: Prepare) -> bool:
    """Whether the worker accepts the request on another wire: a kind may exist on one wire only."""
    others = [
        msgspec.structs.replace(request, wire=wire) for wire in driver.wires if wire != request.wire
    ]
    return any(isinstance(driver.ask(other), Ready) for other in others)


def _check_prefill(case: OperationCase, done: Done) -> None:
    keys, part = int(case.argument("--keys", "10000")), float(case.argument("--prefill", "1"))
    stored = done.operations.get("set", Operation(attempts=0, ok=0))
    expect(set(done.operations) <= {"set"}, "a prefill of something else than sets")
    expected = round(keys * part) if case.prefilled is None else case.prefilled
    expect_equal((stored.ok, stored.attempts), (expected, expected), "keys that the prefill stored")


def _check_operation(kind: str, result: Operation, expected: dict[str, int]) -> None:
    for figure in _FIGURES:
        expect_equal(getattr(result, figure), expected.get(figure, 0), f"{kind}: {figure}")
    for figure in ("value_bytes", "key_bytes"):
        if figure in expected:
            expect_equal(getattr(result, figure), expected[figure], f"{kind}: {figure}")
    expect_equal((result.attempts, result.errors), (result.ok, {}), f"{kind}: attempts and errors")
    for name, blob in (("response", result.response), ("service", result.service)):
        expect(blob is not None, f"{kind}: no {name} histogram")
        decoded = histogram.decode(blob or "")
        expect_equal(decoded.count, result.ok, f"{kind}: count of the {name} histogram")
        # busy_ns is the sum of the same times; buckets keep three digits of each.
        total = decoded.mean() * decoded.count
        near = abs(total - result.busy_ns) <= 0.002 * result.busy_ns + decoded.count
        expect(near, f"{kind}: busy_ns {result.busy_ns}, but {name} adds up to {total:.0f}")


def _check_window(case: OperationCase, driver: WorkerDriver, done: Done) -> None:
    if driver.can("none"):
        expect_equal(done.barriers, 0, "barriers of a cache in the process")
    else:
        expect(done.barriers >= case.barriers, f"{done.barriers} barriers")
    ordered = done.elapsed_ns >= done.send_elapsed_ns > 0
    expect(ordered, f"elapsed {done.elapsed_ns} ns, sent {done.send_elapsed_ns} ns")
    expect(done.max_in_flight >= 1, "max_in_flight is 0")
    if driver.ready.client != TEST_DOUBLE:
        expect(done.cpu_user_ns + done.cpu_system_ns > 0, "no CPU time")
