"""What an imported run would start or contact, if it were continued here. Pure."""

from __future__ import annotations

from cachemark.model.experiment import Experiment

# A client or server with one of these in its text names a program or another machine.
_NAMES_A_PROGRAM = ("command:", "binary=", "quickcached:", "remote:")


def named_programs(experiment: Experiment) -> list[str]:
    """The clients and servers of an experiment that name a program or another machine."""
    named = [
        *[f"client {text}" for text in (*experiment.clients, *experiment.in_process)],
        *[f"server {text}" for text in experiment.servers],
    ]
    return [text for text in named if any(mark in text for mark in _NAMES_A_PROGRAM)]
