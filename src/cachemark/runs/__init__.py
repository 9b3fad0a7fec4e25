"""Plays experiments and stores the outcomes.

play            the main job: a run from its plan to its report
stage           the place that plays it, and its observers
settings        the settings of each trial
planning        the facts of a plan before the first trial
next_trials     decides from the outcomes so far which trials are next
sittings        one sitting
trials          one trial
audit           the checks before the first trial
tapes           the operations that are played
storage         runs on disk; a run as one file
calibrate, jmh  measures clients against a null responder, or under JMH
resilience      runs of faults
events          the events that a running run writes
"""
