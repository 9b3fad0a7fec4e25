"""Is a worker right? The cases that every worker has to pass, run against any of them.

runner.py      the cases by name, their findings    bench.py     a worker that is driven by hand
operations.py  cases that are data                  proxy.py     between a client and memcached
trouble.py     servers that fail, and stops         requests.py  what a client sends
traffic.py     the commands that are sent           tape_values.py  what it ought to send
open_loop.py   schedules
"""

from cachemark.conformance.bench import Bench
from cachemark.conformance.runner import Check, Finding, checks, find

__all__ = ["Bench", "Check", "Finding", "checks", "find"]
