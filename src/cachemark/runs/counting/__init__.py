"""The counting pass of `cachemark why`: the cost of one operation of a client, untimed.

Each count is the difference between a run of 2N operations and one of N operations, divided by N:
what a client does at its start and at its end cancels out. Two passes have a worker each, because
the one disturbs the other: `calls.py` counts system calls under strace, `traffic.py` has what the
server saw. `instructions.py` counts under valgrind, if asked.
"""
