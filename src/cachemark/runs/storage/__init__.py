"""Runs on disk.

store               a run's folder: header, audit, and outcomes as JSON lines
archive             a run as one file, to export and to import
run_limits          whether an imported run is plausible, and the programs that it would start
"""
