"""What is known about a plan before anything is timed, and what is wrong with it.

preflight           what is not on this machine
planned_time        how long the plan takes
memory_plan         how much memory its sittings need
data_fit            whether the items fit into the servers
plan_text           what it plays, in words
"""
