"""A case, and the workers that it applies to, by their claims. Pure."""

from collections.abc import Callable
from typing import NamedTuple

from cachemark.checks.conformance.worker_driver import WorkerDriver
from cachemark.endpoints.capabilities import supported_wires
from cachemark.endpoints.clients import Client
from cachemark.endpoints.servers import RunningServer
from cachemark.model.protocol import Ready

CaseFunction = Callable[[WorkerDriver, str, RunningServer], None]
# Why a case does not apply to a worker; empty if it does.
CaseRule = Callable[[Ready], str]
# A template for workers, which need not do everything.
TEST_DOUBLE = "reference"


def _nothing(_ready: Ready) -> str:
    return ""


class ConformanceCase(NamedTuple):
    """A case: the function that plays it over one protocol, and the rule that chooses its clients.

    `in_process`: also for a cache in the worker's own process, without a server. `all_wires`: over
    each protocol of the client, not only over its default. `must_refuse`: a worker without the
    needed claim gets the case nevertheless, and must answer `unsupported`. `callers`: the number
    of simultaneous callers.
    """

    play: CaseFunction
    rule: CaseRule = _nothing
    in_process: bool = False
    all_wires: bool = True
    must_refuse: bool = False
    callers: int = 1

    def name(self) -> str:
        """The case's name: its function's, in words."""
        return self.play.__name__.replace("_", " ")

    def excluded(self, client: Client, ready: Ready, wire: str) -> str:
        """Why the case does not apply to a client over a protocol; empty if it does."""
        if wire == "none" and not self.in_process:
            return "it has no server"
        if not self.all_wires and wire != supported_wires(ready)[0]:
            return "asked on the library's own protocol only"
        if self.callers > 1 and wire != "none" and has_one_caller(client, ready):
            return "each of its workers has one caller"
        return self.rule(ready)

    def applies(self, client: Client, ready: Ready) -> bool:
        """Whether the case applies over at least one protocol of a client."""
        return any(not self.excluded(client, ready, wire) for wire in supported_wires(ready))


def has_one_caller(client: Client, ready: Ready) -> bool:
    """Whether a worker of the client may refuse several callers."""
    alone = client.concurrency == "processes" or "open_loop" not in ready.capabilities
    return alone and "threads" not in ready.capabilities


def each(*functions: CaseFunction, rule: CaseRule = _nothing) -> tuple[ConformanceCase, ...]:
    """Cases with the same rule."""
    return tuple(ConformanceCase(function, rule) for function in functions)


def claiming(*capabilities: str) -> CaseRule:
    """A rule: for workers that claim all of these capabilities."""

    def rule(ready: Ready) -> str:
        lacking = [name for name in capabilities if name not in ready.capabilities]
        return f"it has no capability `{lacking[0]}`" if lacking else ""

    return rule


def claiming_one_of(*capabilities: str, otherwise: str) -> CaseRule:
    """A rule: for workers that claim at least one of these capabilities."""

    def rule(ready: Ready) -> str:
        return "" if set(capabilities) & set(ready.capabilities) else otherwise

    return rule


def but(client: str, why: str) -> CaseRule:
    """A rule: for all workers except one."""

    def rule(ready: Ready) -> str:
        return why if ready.client == client else ""

    return rule


def every(*rules: CaseRule) -> CaseRule:
    """A rule: for workers that pass all of these rules."""

    def rule(ready: Ready) -> str:
        return next(filter(None, (one(ready) for one in rules)), "")

    return rule
