"""A worker whose counts do not add up."""

from bad_worker import done, say, serve

serve(lambda request: say(done(request["phase"], attempts=0, ok=0, keys=0, hits=0, wrong_values=3)))
