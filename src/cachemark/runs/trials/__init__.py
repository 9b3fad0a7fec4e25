"""One trial: both of its ends are started, its window is played and judged.

setting, callers    what it is played with, and how its callers become threads
prefill             what is stored before the window, or within it
trial               all phases, and the outcome
window, sampler     the measured window, and the samples that are taken in it
"""
