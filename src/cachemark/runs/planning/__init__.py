"""Facts about a plan, and its problems, before anything is timed.

preflight           servers and clients that this machine lacks
planned_time        the time that the plan takes
data_fit            whether items and sittings fit into memory, and windows are long enough
plan_text           the plan in words
"""
