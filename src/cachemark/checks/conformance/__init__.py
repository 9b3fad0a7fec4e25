"""Does a worker count right? The cases that every worker has to pass, run against any client.

runner.py         the cases by name, and what they found
worker_driver.py  a worker under test: started once, driven step by step
operations.py     cases that are data: a tape, and what client and server must have counted
failures.py       servers that fail, and stops
traffic.py        the commands that a client sends
open_loop.py      schedules
capabilities.py   what a worker claims, it plays; what it does not claim, it refuses
timelines.py      the slices and sections of a window
proxy.py          stands between a client and memcached
requests.py       cuts what a client sends into requests
tape_values.py    what a tape asks for, read independently of any worker
"""

from cachemark.checks.conformance.runner import CaseFunction, ConformanceResult, checks, find
from cachemark.checks.conformance.worker_driver import WorkerDriver

__all__ = ["CaseFunction", "ConformanceResult", "WorkerDriver", "checks", "find"]
