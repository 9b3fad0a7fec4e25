"""One trial: both of its ends are started, its window is played and judged.

setting, callers    its settings, and its callers as threads
prefill             stores keys before the window, or within it
trial               all phases, and the outcome
window, sampler     the measured window, and the samples that are taken in it
"""
