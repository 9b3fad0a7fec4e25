"""Does a worker send and count correctly? The cases that every worker must pass.

runner.py         all cases by name, and their results
cases.py          a case, and the workers that it applies to
worker_driver.py  the worker under test: started once, driven step by step
operations.py     cases that are data: a tape, and the counts of client and server
failures.py       cases with failing servers, and stops
traffic.py        cases for the commands that a client sends
open_loop.py      cases for schedules
capabilities.py   a worker plays all kinds that it claims, and refuses all others
timelines.py      cases for the timeline and the sections of a window
slices.py         cases for slices that are played in turn with other workers
groups.py         cases for the times of groups
slice_driver.py   drives slices, also of a worker without a CPU, and compares their results
proxy.py          a proxy between client and memcached
requests.py       splits the bytes that a client sends into requests
tape_values.py    the commands on a tape, read independently of any worker
"""

from cachemark.checks.conformance.cases import ConformanceCase
from cachemark.checks.conformance.runner import ConformanceResult, checks, find
from cachemark.checks.conformance.worker_driver import WorkerDriver
