"""Interleaved rounds: in which order arms play, and what their slices say. Pure.

Low to high: `order` draws the order of play; `estimate` is arithmetic on log ratios; `sitting` has
the figures of one sitting; `looks` says when a run may answer; `pairs` compares two arms over
sittings; `family` decides about pairs that are tested together; `comparing` has everything that is
known about a pair; `ranking` sorts arms; `carry_over` says what an arm does to the next one,
`steal` what the hypervisor took; `narrowing` how intervals narrowed; `questions` is what a run is
asked; `answers` has all of it, and `texts` its sentences.
"""
