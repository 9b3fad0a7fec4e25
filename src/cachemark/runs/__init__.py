"""Plays experiments and stores the outcomes.

audit, prefill, trial, campaign  before the trials, before a window, one trial, all trials
tapes, sampler                   the operations that are played; samples during a window
store, archive                   runs on disk; a run as one file
calibrate, jmh                   measures clients against a null responder, or under JMH
"""
