"""`cachemark suites`: the experiments that cachemark ships with, and the question of each."""

from rich.table import Table

from cachemark.cli.output import console
from cachemark.model import suites as shipped
from cachemark.model.plan import cells


def suites() -> None:
    """List the suites, and the question that each one answers."""
    table = Table(box=None, pad_edge=False)
    for column in ("suite", "question", "cells", "blocks"):
        table.add_column(column, justify="right" if column in ("cells", "blocks") else "left")
    for name in shipped.names():
        experiment = shipped.find(name)
        table.add_row(
            name, experiment.question, str(len(cells(experiment))), str(experiment.blocks)
        )
    console().print(table)
