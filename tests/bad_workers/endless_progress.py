"""A worker that starts a run and goes on telling how far it is."""

import time

from bad_worker import say, serve


def on_run(_request: object) -> None:
    """It never ends."""
    while True:
        say({"type": "progress", "ops": 1, "errors": 0})
        time.sleep(0.01)


serve(on_run)
