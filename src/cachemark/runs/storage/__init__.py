"""Runs on disk.

store               a run's folder: header, audit, and outcomes as JSON lines
archive             a run as one file, to export and to import
run_limits          whether an imported run can be what it says, and what it would start
"""
