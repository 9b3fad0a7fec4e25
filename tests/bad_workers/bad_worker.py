"""The base of the faulty workers: a worker that answers in order, with one fault."""

import json
import sys
from typing import Any

READY = {
    "type": "ready",
    "client": "miniature",
    "library": "none",
    "capabilities": ["text", "get", "mget", "set"],
}


def say(answer: dict[str, Any]) -> None:
    """One answer on stdout."""
    print(json.dumps(answer), flush=True)


def requests() -> Any:
    """The requests, until stdin ends."""
    for line in sys.stdin:
        yield json.loads(line)


def done(phase: str, attempts: int = 10, **fields: Any) -> dict[str, Any]:
    """A `done` that claims these gets, all of them hits."""
    operation = {"attempts": attempts, "ok": attempts, "hits": attempts, "keys": attempts}
    return {
        "type": "done",
        "phase": phase,
        "elapsed_ns": 10**9,
        "send_elapsed_ns": 10**9,
        "operations": {"get": {**operation, **fields}},
    }


def stored(phase: str) -> dict[str, Any]:
    """The `done` of a prefill that had nothing to do."""
    return {**done(phase), "operations": {}}


def serve(on_run: Any) -> None:
    """Be an ordinary worker, but for what `on_run(request)` answers to a measured run."""
    for request in requests():
        kind = request["type"]
        if kind in ("hello", "prepare"):
            say(READY)
        elif kind == "run" and request["phase"] == "measure":
            on_run(request)
        elif kind == "run":
            say(stored(request["phase"]))
        elif kind == "bye":
            return
