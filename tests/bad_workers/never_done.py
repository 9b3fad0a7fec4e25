"""A worker that starts a run and never answers."""

from bad_worker import serve

serve(lambda _request: None)
