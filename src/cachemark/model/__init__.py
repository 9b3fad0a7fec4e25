"""What is measured and what comes of it, as frozen values: experiments, plans, messages, outcomes.

Everything here is pure but for reading files that ship with cachemark. The lowest room: it
imports no other.
"""
