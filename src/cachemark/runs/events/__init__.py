"""Events that a running run writes.

The run's process appends events to a file in its folder; pages read them from there. So a page
costs the run nothing, and a reload or a second viewer finds everything.
"""
