"""A worker that hangs at hello."""

from miniature import requests

for _ in requests():
    pass
