"""A run while it goes on: what it writes about itself, and what a page makes of it.

The run's process appends events to a file in its folder. The server's process reads them. So a page
costs the run nothing, and a reload or a second viewer finds everything.
"""
