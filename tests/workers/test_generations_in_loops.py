"""Reads find lost and stale writes in each loop in which a caller's calls keep their order."""

import shutil
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cachemark.model.protocol import RunRequest
from tests.lying_server import lying
from tests.workers import worker_driver
from tests.workers.test_generations import (
    GENERATIONS,
    KEYS,
    NETWORK,
    OPS,
    Player,
    honest,
    player,
    prepared,
    two_servers,
    wrong_gets,
)

__all__ = ["honest", "player", "two_servers"]

pytestmark = pytest.mark.skipif(
    shutil.which("memcached") is None, reason="apt-get install memcached"
)

# Twice as many: of several servers, each is honest for a while after the prefill.
_OPS = 2 * OPS
_RUN = RunRequest(phase="measure", ops=_OPS)
_KEYS = ("--keys", str(KEYS), "--size", "100")
_MIXED = (*_KEYS, "--mix", "get=1,set=1")
_TAPE = (*_MIXED, "--ops", str(_OPS))


class Loop(msgspec.Struct, frozen=True, kw_only=True):
    """Another way to play a tape than one caller's closed loop with one operation at a time.

    `needs` is what a client has to claim, `prepare` are fields of the request.
    """

    name: str
    needs: frozenset[str]
    tape: tuple[str, ...] = _TAPE
    prepare: dict[str, int] = {}
    servers: int = 1


_MGETS = (*_KEYS, "--mix", "mget=1,set=1", "--run", "5", "--ops", str(_OPS))
_AT_TIMES = ("--schedule", "uniform", "--rate", "4000", "--duration", "500ms")
LOOPS = [
    Loop(name="open", needs=frozenset({"open_loop"}), tape=(*_MIXED, *_AT_TIMES)),
    Loop(name="think", needs=frozenset({"think"}), tape=(*_TAPE, "--think", "20us")),
    Loop(name="deep", needs=frozenset({"pipeline"}), prepare={"depth": 8}),
    Loop(name="cluster", needs=frozenset({"cluster"}), servers=2),
    Loop(
        name="quiet",
        needs=frozenset({"set_noreply"}),
        tape=(*_KEYS, "--mix", "get=1,set_noreply=1", "--ops", str(_OPS)),
    ),
    Loop(name="mgets", needs=frozenset({"mget"}), tape=_MGETS),
    Loop(
        name="mgets_deep", needs=frozenset({"mget", "pipeline"}), tape=_MGETS, prepare={"depth": 8}
    ),
    Loop(name="mgets_cluster", needs=frozenset({"mget", "cluster"}), tape=_MGETS, servers=2),
]


def _keeps_order(name: str, loop: Loop, can: set[str]) -> bool:
    deep = loop.name in {"deep", "mgets_deep", "quiet"}
    return "in_order" in can if deep else name in NETWORK


FURTHER = pytest.mark.slow("plays a further library of a language that has this loop")


def _played() -> list[Any]:
    """A client of each language with each loop that it claims; and each that claims `in_order`.

    One process has all tests of a client. The first client of a language with a loop is not slow.
    """
    known = {name: worker_driver.claims(name) for name in worker_driver.known()}
    can = {name: set(ready.capabilities) for name, ready in known.items() if ready is not None}
    first: dict[tuple[str, str], str] = {}
    for name in sorted(can, key=lambda name: name not in NETWORK):
        for loop in LOOPS:
            if loop.needs <= can[name] and _keeps_order(name, loop, can[name]):
                first.setdefault((worker_driver.known()[name].language, loop.name), name)
    return [
        pytest.param(
            client,
            loop,
            id=f"{name}-{loop.name}",
            marks=[
                pytest.mark.xdist_group(name),
                *([] if first[client.language, loop.name] == name else [FURTHER]),
            ],
        )
        for name in can
        for loop in LOOPS
        if loop.needs <= can[name] and _keeps_order(name, loop, can[name])
        for client in [worker_driver.known()[name]]
    ]


def _is_slow(played: Any) -> bool:
    return any(mark.name == "slow" for mark in played.marks)


def _with_lies(played: list[Any]) -> list[Any]:
    """Each of them with a lie in turn; the native client, which has every loop, with both."""
    turns: Counter[str] = Counter()
    found = []
    for each in sorted(played, key=_is_slow):
        client, loop = each.values
        turn = turns[client.language]
        turns[client.language] += 1
        for lie in LIES if client.id == "native" else [LIES[turn % len(LIES)]]:
            name = f"{client.id}-{loop.name}-{lie}"
            found.append(pytest.param(client, loop, lie, id=name, marks=each.marks))
    return found


LIES = ("lost", "stale")
PLAYED = _played()
LYING = _with_lies(PLAYED)
# Without the scope, each test would start a worker.
_INDIRECT = {"indirect": ["player"], "scope": "module"}
each_loop = pytest.mark.parametrize(("player", "loop"), PLAYED, **_INDIRECT)


@pytest.mark.parametrize(("player", "loop", "lie"), LYING, **_INDIRECT)
def test_other_loops_find_the_lies_too(
    player: Player, honest: list[str], loop: Loop, lie: str, tmp_path: Path
) -> None:
    """Of most clients, a loop meets one lie: all loops of a worker share the check of a value.

    tests/workers/test_generations.py plays each lie to that check.
    """
    tape = worker_driver.write_tape(tmp_path, *loop.tape, *GENERATIONS)
    with ExitStack() as stack:
        behind = honest[: loop.servers]
        servers = [stack.enter_context(lying(lie, KEYS, address)) for address in behind]
        worker = prepared(player, servers[0], tape, servers=servers, **loop.prepare)
        assert wrong_gets(worker_driver.play(worker, _RUN)) >= 20


@each_loop
def test_other_loops_accuse_no_honest_server(
    player: Player, honest: list[str], loop: Loop, tmp_path: Path
) -> None:
    tape = worker_driver.write_tape(tmp_path, *loop.tape, *GENERATIONS)
    servers = honest[: loop.servers]
    worker = prepared(player, servers[0], tape, servers=servers, **loop.prepare)
    assert [wrong_gets(worker_driver.play(worker, _RUN)) for _ in range(2)] == [0, 0]


def test_each_loop_is_played_by_clients_of_several_languages() -> None:
    """A loop that a worker no longer claims would not be played, and no test would fail."""
    played = [str(each.id) for each in PLAYED]
    assert sum(name.endswith("-open") for name in played) >= 8
    assert sum(name.endswith("-cluster") for name in played) >= 6
    assert sum(name.endswith("-quiet") for name in played) >= 6
    assert sum(name.endswith("-mgets") for name in played) >= 9
    assert sum(name.endswith("-mgets_cluster") for name in played) >= 6
    assert {"native-deep", "java/folsom-deep", "java/spymemcached-deep"} <= set(played)


def test_each_loop_and_each_language_meets_both_lies() -> None:
    quick = [each.values for each in LYING if not _is_slow(each)]
    met = [(client.language, loop.name, lie) for client, loop, lie in quick]
    for at, meets in enumerate(("language", "loop")):
        for one in {each[at] for each in met}:
            assert {each[2] for each in met if each[at] == one} == set(LIES), f"{meets} {one}"
