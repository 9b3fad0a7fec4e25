"""A worker that cannot do what is asked."""

from bad_worker import READY, requests, say

for request in requests():
    if request["type"] == "hello":
        say(READY)
    elif request["type"] == "prepare":
        say({"type": "unsupported", "reason": "no text protocol", "remedy": "use another client"})
