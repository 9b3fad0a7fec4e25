"""The experiment that a name and the typed options stand for."""

from dataclasses import replace

from cachemark.cli.overrides import Overrides, apply
from cachemark.endpoints.clients import matching_clients, parse_client, registry
from cachemark.host import process
from cachemark.model import suites
from cachemark.model.experiment import Experiment
from cachemark.model.presets import expand


def planned_experiment(name: str, overrides: Overrides) -> Experiment:
    """The suite or file of that name, with the typed options. Raises UsageError."""
    return changed_experiment(suites.find(name, quick=overrides.quick), overrides)


def changed_experiment(experiment: Experiment, overrides: Overrides) -> Experiment:
    """An experiment with the typed options. Raises UsageError."""
    engine = process.binary_path()
    known = registry(engine)
    return apply(
        expand(experiment, engine),
        replace(overrides, client=matching_clients(overrides.client, known)),
        lambda text: parse_client(text, known).client.in_process,
        engine,
    )
