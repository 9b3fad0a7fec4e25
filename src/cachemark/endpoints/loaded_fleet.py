"""A measuring client and the generators of its load, used as one fleet."""

from __future__ import annotations

from cachemark.endpoints.fleet import Fleet, RunMonitor, run_together
from cachemark.endpoints.worker import Worker
from cachemark.model.outcome import Observed
from cachemark.model.protocol import Done, Ready, RunRequest


class LoadedFleet:
    """Plays a phase on both. The results are those of the measuring client.

    `generated` is what the generators did in the last phase.
    """

    def __init__(self, measuring: Fleet, generators: Fleet) -> None:
        self._measuring, self._generators = measuring, generators
        self.generated: Done | None = None

    @property
    def workers(self) -> list[Worker]:
        """All workers of both."""
        return [*self._measuring.workers, *self._generators.workers]

    @property
    def ready(self) -> Ready | None:
        """The answer of the measuring client to `hello`."""
        return self._measuring.ready

    @property
    def began_unix_ns(self) -> int:
        """When the last phase began."""
        return self._measuring.began_unix_ns

    @property
    def observed(self) -> Observed | None:
        """Observations of the measuring client in the last phase."""
        return self._measuring.observed

    @property
    def generated_observed(self) -> Observed | None:
        """Observations of the generators in the last phase."""
        return self._generators.observed

    def run(self, request: RunRequest, watch: RunMonitor) -> Done:
        """Play one phase. The generators alone store the keys. Raises TrialError."""
        if request.phase == "prefill":
            return self._generators.run(request, watch)
        fleets = [self._measuring, self._generators]
        done, self.generated = run_together(fleets, request, watch)
        return done

    def bye(self) -> None:
        """Ask all workers to exit."""
        self._measuring.bye()
        self._generators.bye()
