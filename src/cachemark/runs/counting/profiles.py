"""Profiles: each work once more, under the sampler of the client's language."""

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial

from cachemark.endpoints.clients import ClientSpec
from cachemark.endpoints.servers import running
from cachemark.host import perf
from cachemark.model.counts import FoldedStacks, parse_stacks
from cachemark.model.errors import TrialError
from cachemark.runs.counting.player import CountingPlace, Work, playing, server_of
from cachemark.runs.counting.processor import warmed_up

_NO_SAMPLER = "# missing: its worker has no sampler\n"


def take_profiles(
    client: ClientSpec, works: Sequence[Work], place: CountingPlace, length_ms: int
) -> list[FoldedStacks]:
    """A profile of each work, played for `length_ms`; a failure is the profile's own."""
    return [_profile(client, work, place, length_ms) for work in works]


def _profile(client: ClientSpec, work: Work, place: CountingPlace, length_ms: int) -> FoldedStacks:
    path, by_perf = place.folder / "profile", client.client.sampler == perf.PROGRAM
    taken = partial(
        FoldedStacks, client=client.text, kind=work.kind, language=client.client.language
    )
    try:
        with (
            running(server_of(client), cpus=place.server_cpus) as server,
            playing(client, place.worker_cpus, variables={"CACHEMARK_PROFILE": path}) as player,
        ):
            player.prepare(work, server)
            warmed_up(player)
            path.unlink(missing_ok=True)
            with perf.sampled(player.fleet.workers[0].pid, path) if by_perf else nullcontext():
                player.play_for(length_ms)
        text = path.read_text("utf-8", "replace") if path.exists() else _NO_SAMPLER
        sampler, stacks, failure = parse_stacks(text)
    except TrialError as error:
        return taken(failure=error.text)
    return taken(sampler=sampler, stacks=stacks, failure=failure)
