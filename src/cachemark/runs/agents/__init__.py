"""Runs over several hosts, on Dask: an agent on each host, and the coordinator that asks them.

Nothing of this is in a measured path. Only this room imports Dask, and only for runs over hosts.
"""
