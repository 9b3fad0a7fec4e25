"""A worker that begins a run and is never heard of again."""

from miniature import serve

serve(lambda _request: None)
