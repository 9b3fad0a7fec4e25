"""A worker whose histograms are none."""

from miniature import done, say, serve

serve(lambda request: say(done(request["phase"], response="HISTFAAA", service="HISTFAAA")))
