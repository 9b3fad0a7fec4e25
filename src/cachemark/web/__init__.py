"""Pages of runs in a browser: `cachemark web`. Its packages are an extra.

`server.py` owns the process, `guard.py` decides which requests are served, `pages/` has one file
for each kind of page.
"""
