"""Can the parts be trusted? Servers, workers, the machine and the times are each tested here.

probe        does a server do what memcached does?
conformance  does a worker count right?
fidelity     are a worker's times true?
doctor       is this machine fit to measure on?
item_memory  what does an item cost in a server's memory?
"""
