"""One sitting: several cells are ready at the same time and play slices in turn.

arm, slice_log      one cell, and its slices so far
warm_up             when an arm is warm, and whether its slices are long enough
sitting             all arms, from their start to their outcomes
"""
