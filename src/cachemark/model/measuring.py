"""A load that others make, beside a client that only measures. Pure."""

from __future__ import annotations

from cachemark.model.experiment import Load


def measuring_load(load: Load) -> Load:
    """The load of the trial's own client: all, or a low rate where generators make the load."""
    if load.measure is None:
        return load
    return Load(
        name=load.name,
        schedule="poisson",
        rate=load.measure.rate,
        connections=load.measure.connections,
        wire=load.wire,
    )
