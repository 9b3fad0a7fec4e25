"""A worker that cannot connect."""

from miniature import READY, requests, say

for request in requests():
    if request["type"] == "hello":
        say(READY)
    elif request["type"] == "prepare":
        say({"type": "error", "kind": "connect", "text": "connection refused"})
