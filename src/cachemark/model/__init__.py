"""The values that everything else works with: experiments, plans, protocol messages, outcomes.

All values are frozen. The code here is pure, except that it reads files that ship with cachemark
and asks the engine for its presets. This is the lowest room: it imports no other.
"""
