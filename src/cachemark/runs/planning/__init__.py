"""Facts about a plan, and its problems, before anything is timed.

preflight           servers and clients that this machine lacks
planned_time        how long the plan takes
memory_plan         how much memory its sittings need
data_fit            whether the items fit into the servers, and windows are long enough
plan_text           what it plays, in words
"""
