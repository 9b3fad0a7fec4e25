"""A worker that claims operations which it never sent."""

from bad_worker import done, say, serve

serve(lambda request: say(done(request["phase"], attempts=1000)))
