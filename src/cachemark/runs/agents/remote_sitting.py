"""The coordinator's side of a sitting: the servers on one host, all workers on another one."""

from collections.abc import Mapping, Sequence

import msgspec

from cachemark.model.errors import TrialError
from cachemark.model.merging import worst_noise
from cachemark.model.outcome import HostNoise, HostPart, Outcome
from cachemark.runs.agents import messages
from cachemark.runs.agents.coordinator import ANSWER_S, Coordinator
from cachemark.runs.agents.remote import host_part, start_servers, started_or_raise, write_tapes
from cachemark.runs.sittings.sitting import SittingDisplay, SittingSetting
from cachemark.runs.trials.setting import Setting
from cachemark.runs.trials.trial import TrialRun


def play_remote_sitting(
    coordinator: Coordinator, setting: SittingSetting, display: SittingDisplay
) -> list[Outcome]:
    """Play a sitting. Failures of hosts, servers and workers are in the outcomes."""
    sitting = _RemoteSitting(coordinator, setting, display)
    try:
        sitting.play()
    except TrialError as error:
        sitting.fail(error)
    finally:
        coordinator.end_trial()
    return sitting.outcomes


class _RemoteSitting:
    def __init__(
        self, coordinator: Coordinator, setting: SittingSetting, display: SittingDisplay
    ) -> None:
        self._coordinator, self._setting, self._display = coordinator, setting, display
        self._server = coordinator.hosts.server
        (self._client,) = coordinator.hosts.clients
        self._arms = [arm for members in setting.sets for arm in members]
        self.outcomes: list[Outcome] = []

    def play(self) -> None:
        """Start the servers, and let the host of clients play. Raises TrialError."""
        coordinator = self._coordinator
        before = coordinator.clocks()
        for arm in {arm.tape.facts.sha256: arm for arm in self._arms}.values():
            write_tapes(coordinator, arm, [self._client])
        self._display.doing(f"{len(self._arms)} servers start on {self._server.name}")
        started = self._started(start_servers(coordinator, [a.server.text for a in self._arms]))
        if started:
            self._display.doing(f"is played on {self._client.name}")
            played, noise = self._played(self._request(started))
            after = coordinator.clocks()
            parts = [
                host_part(host, before[host.name], after[host.name], noise.get(host.name))
                for host in coordinator.hosts.hosts
            ]
            self.outcomes += [self._with_hosts(one, started, parts) for one in played]

    def fail(self, error: TrialError) -> None:
        """All arms that have no outcome yet have failed for this reason."""
        known = {outcome.trial.index for outcome in self.outcomes}
        self.outcomes += [_failed(arm, error) for arm in self._arms if arm.trial.index not in known]

    def _started(self, starts: Sequence[messages.ServerStart]) -> dict[int, messages.SittingArm]:
        """The arms whose servers run, by the index of their trials; the others have failed."""
        found: dict[int, messages.SittingArm] = {}
        for number, (arm, start) in enumerate(zip(self._arms, starts, strict=True)):
            try:
                server = started_or_raise(self._coordinator, start)
            except TrialError as error:
                self.outcomes.append(_failed(arm, error))
            else:
                found[arm.trial.index] = _arm(number, arm, server)
        return found

    def _request(self, started: Mapping[int, messages.SittingArm]) -> messages.PlaySitting:
        setting = self._setting
        sets = [
            [started[arm.trial.index] for arm in members if arm.trial.index in started]
            for members in setting.sets
        ]
        return messages.PlaySitting(
            sets=[members for members in sets if members],
            rounds=setting.rounds,
            grown_ms=setting.grown_ms,
            seed=setting.seed,
        )

    def _played(self, request: messages.PlaySitting) -> tuple[list[Outcome], dict[str, HostNoise]]:
        coordinator, noise = self._coordinator, dict[str, HostNoise]()
        apart = self._server.name != self._client.name
        if apart:
            coordinator.ask(self._server, messages.BeginWindow(), messages.ServerReading, ANSWER_S)
        played = coordinator.ask(self._client, request, list[Outcome], None)
        if apart:
            reading = coordinator.ask(
                self._server, messages.EndWindow(), messages.WindowReading, ANSWER_S
            )
            noise[self._server.name] = reading.noise
        known = [outcome.noise for outcome in played if outcome.noise is not None]
        if known:
            noise[self._client.name] = known[0]
        return played, noise

    def _with_hosts(
        self,
        outcome: Outcome,
        started: Mapping[int, messages.SittingArm],
        parts: Sequence[HostPart],
    ) -> Outcome:
        server = started[outcome.trial.index].started
        hosts = [
            msgspec.structs.replace(part, measure=outcome.measure)
            if part.name == self._client.name
            else part
            for part in parts
        ]
        noise = [part.noise for part in parts if part.noise is not None]
        return msgspec.structs.replace(
            outcome,
            hosts=hosts,
            noise=worst_noise(noise) if outcome.noise is not None else None,
            binaries=[*server.binaries, *outcome.binaries],
        )


def _arm(number: int, arm: Setting, server: messages.StartedServer) -> messages.SittingArm:
    return messages.SittingArm(
        **arm.work(),
        number=number,
        client=arm.client.text,
        server=arm.server.text,
        started=server,
        generations=arm.tape.generations,
    )


def _failed(arm: Setting, error: TrialError) -> Outcome:
    trial = TrialRun(arm, lambda _: None)
    trial.fail(error)
    return trial.outcome
