"""Checks of the parts of a measurement: servers, workers, the machine, and the reported times.

probe        does a server behave like memcached?
conformance  does a worker send and count correctly?
fidelity     are a worker's reported times true?
doctor       is this machine suitable for measurements?
item_memory  how much memory does an item need in a server?
"""
