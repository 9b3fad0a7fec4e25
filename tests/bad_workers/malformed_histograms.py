"""A worker whose histograms cannot be decoded."""

from bad_worker import done, say, serve

serve(lambda request: say(done(request["phase"], response="HISTFAAA", service="HISTFAAA")))
