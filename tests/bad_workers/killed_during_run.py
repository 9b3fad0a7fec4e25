"""A worker that is killed in the middle of a run."""

import os
import signal

from bad_worker import say, serve


def die(_request: object) -> None:
    say({"type": "progress", "ops": 5})
    os.kill(os.getpid(), signal.SIGKILL)


serve(die)
