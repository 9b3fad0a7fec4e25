"""The order of the clients of a group: least squares on client and block."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


def client_effects(figures: Mapping[str, Mapping[int, float]]) -> dict[str, float]:
    """The effect of each client on the logarithm of a figure: more is a higher figure.

    `figures`: client → block → the figure of its trial, all above 0. The model is
    log figure = block + client. So a client is not ranked higher because its valid trials happen to
    be in the faster blocks.
    """
    clients = list(figures)
    blocks = sorted({block for of_client in figures.values() for block in of_client})
    cells = [
        (clients.index(client), blocks.index(block), value)
        for client, of_client in figures.items()
        for block, value in of_client.items()
    ]
    if not cells:
        return {}
    model = np.zeros((len(cells), len(clients) + len(blocks)))
    for row, (client, block, _) in enumerate(cells):
        model[row, client] = model[row, len(clients) + block] = 1
    fitted = np.linalg.lstsq(model, np.log([value for _, _, value in cells]), rcond=None)[0]
    return {client: float(fitted[number]) for number, client in enumerate(clients)}
