"""A worker that cannot connect."""

from bad_worker import READY, requests, say

for request in requests():
    if request["type"] == "hello":
        say(READY)
    elif request["type"] == "prepare":
        say({"type": "error", "kind": "connect", "text": "connection refused"})
