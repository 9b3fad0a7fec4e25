"""A worker whose timeline has two lists of different length."""

from bad_worker import done, say, serve

COURSE = {"slice_ns": 10**6, "ok": [1, 2], "response_ns": [1]}
serve(lambda request: say({**done(request["phase"]), "timeline": COURSE}))
