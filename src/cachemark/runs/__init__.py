"""Plays experiments and stores the outcomes.

play            the main job: a run from its plan to its report
stage           where it is played, and who watches
settings        what each trial is played with
planning        what is known about a plan before anything is timed
next_trials     what is played next, decided from the outcomes so far
sittings        one sitting
trials          one trial
audit           what is checked before the first trial
tapes           the operations that are played
storage         runs on disk; a run as one file
calibrate, jmh  measures clients against a null responder, or under JMH
resilience      runs of faults
events          what it writes about itself while it goes on
"""
