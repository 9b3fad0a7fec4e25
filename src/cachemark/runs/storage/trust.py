"""Programs, files and hosts that an imported run would use, if continued here. Pure."""

from __future__ import annotations

from cachemark.model.client_name import parse_client_name
from cachemark.model.experiment import Experiment

# A client or server with one of these in its text names a program or another machine.
_NAMES_A_PROGRAM = ("command:", "binary=", "quickcached:", "remote:")


def named_programs(experiment: Experiment) -> list[str]:
    """The programs, files and other machines that an experiment names.

    A client's version is a program too: it is downloaded, or built from the folder that it names.
    A trace is a file of this machine, and its keys are sent to servers.
    """
    generators = [load.measure.generator for load in experiment.loads if load.measure]
    clients = [
        f"client {text}"
        for text in (*experiment.clients, *experiment.in_process, *generators)
        if _names_a_program(text) or parse_client_name(text).version
    ]
    servers = [f"server {text}" for text in experiment.servers if _names_a_program(text)]
    traces = [f"trace {workload.trace}" for workload in experiment.workloads if workload.trace]
    return [*clients, *servers, *traces]


def _names_a_program(text: str) -> bool:
    return any(mark in text for mark in _NAMES_A_PROGRAM)
