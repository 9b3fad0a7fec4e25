"""Playing an experiment and keeping what came of it.

audit, prefill, trial, campaign  what is done before, for and around each trial
tapes, sampler                   the operations that are played; what is sampled meanwhile
store, archive                   runs on disk, or as one file
calibrate, jmh                   two other ways to play: without a server's cost, and under JMH
"""
