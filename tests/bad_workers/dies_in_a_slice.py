"""A worker that plays its warm-up slices and some counted ones, then exits."""

import sys

from bad_worker import READY, done, requests, say, stored

SLICES = 12

left = SLICES
for request in requests():
    kind = request["type"]
    if kind in ("hello", "prepare", "begin_slices"):
        say({**READY, "capabilities": [*READY["capabilities"], "slices"]})
    elif kind == "run":
        say(stored(request["phase"]))
    elif kind == "slice":
        left -= 1
        if left < 0:
            sys.exit(7)
        say({"type": "slice_done", "ops": 10, "errors": 0, "lead_in_ops": 10, "elapsed_ns": 10**6})
    elif kind == "end_slices":
        say(done("measure"))
    elif kind == "bye":
        break
