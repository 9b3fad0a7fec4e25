"""A worker that begins a run and is never heard of again."""

from bad_worker import serve

serve(lambda _request: None)
