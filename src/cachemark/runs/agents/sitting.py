"""A sitting on the host of clients: the servers of its arms run already, there or on another host.

The order of play follows from the seed, and everything between two slices happens on this host. So
the network is only between clients and servers, and no two clocks have to agree.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial

import msgspec

from cachemark.endpoints.clients import ClientSpec
from cachemark.endpoints.servers import RunningServer, parse_spec, tls, used_elsewhere
from cachemark.host.temporary import temporary_folder
from cachemark.model.outcome import Outcome
from cachemark.runs.agents.messages import PlaySitting, SittingArm
from cachemark.runs.sittings.sitting import SittingDisplay, SittingSetting, play_sitting
from cachemark.runs.tapes import TapeCache
from cachemark.runs.trials.setting import Setting


class SittingPlace(msgspec.Struct, frozen=True, kw_only=True):
    """The parties with which a host of clients plays sittings.

    `servers` are this host's servers, by the number of their arm: if it is also the server's host,
    their CPU time is known. `check_going_on` raises TrialError when the sitting is broken off.
    """

    client_of: Callable[[str], ClientSpec]
    tapes: TapeCache
    worker_cpus: str
    servers: Mapping[int, RunningServer]
    check_going_on: Callable[[], None]


def play_here(request: PlaySitting, place: SittingPlace) -> list[Outcome]:
    """Play a sitting; each arm is one outcome. Raises TrialError if it is broken off."""
    setting = SittingSetting(
        sets=[[_setting(arm, place) for arm in part] for part in request.sets],
        rounds=request.rounds,
        grown_ms=request.grown_ms,
        seed=request.seed,
    )
    return play_sitting(
        setting,
        SittingDisplay(
            doing=lambda _: place.check_going_on(), played=lambda _: place.check_going_on()
        ),
    )


def _setting(arm: SittingArm, place: SittingPlace) -> Setting:
    return Setting(
        **arm.work(),
        client=place.client_of(arm.client),
        server=parse_spec(arm.server),
        tape=place.tapes.get(
            arm.workload, arm.load, arm.timing, arm.trial.tape_seed, arm.generations
        ),
        server_cpus=arm.started.facts.cpus,
        worker_cpus=place.worker_cpus,
        slices=True,
        target=partial(_server_of, arm, place),
    )


@contextmanager
def _server_of(arm: SittingArm, place: SittingPlace) -> Generator[RunningServer]:
    """The server of an arm; connections for its `stats` if it is on another host."""
    place.check_going_on()
    if own := place.servers.get(arm.number):
        yield own
        return
    started = arm.started
    with temporary_folder() as folder:
        encryption = tls.written(started.tls, folder)
        there = started.addresses, started.facts, started.controls
        with used_elsewhere(*there, encryption) as server:
            yield server
