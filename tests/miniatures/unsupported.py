"""A worker that cannot do what is asked."""

from miniature import READY, requests, say

for request in requests():
    if request["type"] == "hello":
        say(READY)
    elif request["type"] == "prepare":
        say({"type": "unsupported", "reason": "no text protocol", "remedy": "use another client"})
