"""Interleaved rounds: in which order arms play, and what their slices say. Pure.

`order` draws the order of play. `sitting` has the figures of one sitting, `estimate` what they add
up to.
"""
