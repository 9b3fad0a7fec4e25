"""Cases for the commands that a client sends: every client must send the commands of the tape.

A proxy between client and server records the commands. They are compared with the tape, which is
read independently of any worker.
"""

from pathlib import Path

import msgspec

from cachemark.checks.conformance.cases import each
from cachemark.checks.conformance.proxy import ReplyProxy, proxied
from cachemark.checks.conformance.requests import STORES, Command
from cachemark.checks.conformance.tape_values import tape_commands
from cachemark.checks.conformance.worker_driver import WorkerDriver, expect, expect_equal
from cachemark.endpoints.servers import RunningServer
from cachemark.model.protocol import Ready, RunRequest, Unsupported

_OPS = 40
_KEYS = "20"
_SIZES = ("--keys", _KEYS, "--size", "10..5000", "--exptime", "77", "--compressibility", "1")
_MANY = (
    *("--keys", _KEYS, "--key-length", "9..40", "--size", "10..300"),
    *("--exptime", "77", "--run", "6"),
)
_STEPS = frozenset({"incr", "decr"})
_WRITES = STORES | {"delete", "touch"} | _STEPS
_VERBS = _WRITES | {"get", "gets", "mget", "gat", "mset"}
_BATCHES = frozenset({"mget", "mset"})


def the_bytes_on_the_wire(driver: WorkerDriver, wire: str, server: RunningServer) -> None:
    """Stores have raw values, flags 0 and the tape's expiry time, in the requested protocol."""
    words = (*_SIZES, "--mix", "set=1", "--ops", str(_OPS))
    with proxied(server.addresses[0]) as proxy:
        driver.prepare(driver.request(wire, [proxy.address], words))
        _play_tape(driver)
        _check_protocol(proxy, wire)
        check_commands(proxy.commands, driver.folder / "tape", "set", common=_common(driver))


def every_command_on_the_wire(driver: WorkerDriver, wire: str, server: RunningServer) -> None:
    """Each kind sends the tape's keys, amounts and expiry times, in order."""
    played = [kind for kind in driver.ready.capabilities if _played(driver, wire, server, kind)]
    expect(played, "no kind could be played")


CASES = each(the_bytes_on_the_wire, every_command_on_the_wire)


def _played(driver: WorkerDriver, wire: str, server: RunningServer, kind: str) -> bool:
    """Play a tape of one kind. False if it is not a kind, or not supported on this wire."""
    verb = kind.removesuffix("_noreply")
    if verb not in _VERBS:
        return False
    counters = ("--counters", _KEYS) if verb in _STEPS else ()
    words = (*_MANY, *counters, "--mix", f"{kind}=1", "--ops", str(_OPS))
    with proxied(server.addresses[0]) as proxy:
        answer = driver.ask(driver.request(wire, [proxy.address], words))
        if isinstance(answer, Unsupported):
            return False
        expect(isinstance(answer, Ready), f"{kind}: prepare was answered by {answer}")
        _play_tape(driver)
        check_commands(proxy.commands, driver.folder / "tape", verb, common=_common(driver))
    return True


def check_commands(commands: list[Command], tape: Path, verb: str, *, common: bool) -> None:
    """Compare the commands sent with the tape: records in order, commands of a record in any order.

    Raises CaseFailedError.
    """
    groups = tape_commands(tape)
    # Some libraries test a connection with a key of their own.
    keys = {command.key for group in groups for command in group}
    sent = [_comparable(each, verb, common) for each in commands if each.key in keys]
    expect_equal(len(sent), sum(map(len, groups)), f"{verb}: commands that were sent")
    at = 0
    for group in groups:
        wanted = sorted(_comparable(each, verb, common) for each in group)
        actual = sorted(sent[at : at + len(group)])
        for got, expected in zip(actual, wanted, strict=True):
            expect(got == expected, f"{verb}: sent {_short(got)}, the tape has {_short(expected)}")
        at += len(group)


def _common(driver: WorkerDriver) -> bool:
    return driver.spec.options.get("profile") != "defaults"


def _comparable(command: Command, verb: str, common: bool) -> Command:
    """The parts of a command that must equal the tape: without batching and the library's flags."""
    quiet = command.quiet and command.verb in _WRITES and verb not in _BATCHES
    command = msgspec.structs.replace(command, quiet=quiet)
    return command if common else msgspec.structs.replace(command, flags=0, value=b"")


def _short(command: Command) -> str:
    """A command as text, with the value's length instead of the value."""
    fields = msgspec.structs.asdict(command) | {"value": f"{len(command.value)} bytes"}
    return " ".join(f"{name}={value}" for name, value in fields.items())


def _play_tape(driver: WorkerDriver) -> None:
    driver.play(RunRequest(phase="prefill"))
    done = driver.play(RunRequest(phase="measure", ops=_OPS))
    expect_equal(sum(operation.ok for operation in done.operations.values()), _OPS, "ok of all")


def _check_protocol(proxy: ReplyProxy, wire: str) -> None:
    binary = {byte == 0x80 for byte in proxy.first_bytes}
    if wire == "binary":
        expect_equal(binary, {True}, "connections that begin with 0x80")
    else:
        expect_equal(binary, {False}, "connections that begin with 0x80")
        expect(wire in proxy.wires, f"requests seen: {sorted(proxy.wires)}")
