"""A worker that was built for version 1 of the worker protocol."""

from bad_worker import READY, requests, say

for request in requests():
    if request["type"] == "hello":
        say({**READY, "protocol": 1})
