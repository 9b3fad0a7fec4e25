"""A worker that hangs at hello."""

from bad_worker import requests

for _ in requests():
    pass
