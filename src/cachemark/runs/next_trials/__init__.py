"""Decides from the outcomes so far which part is played next. Pure.

questions           the questions of a run, and its looks
stopping            which cells of the next sitting are still played
replays, giving_up  which trials are played once more, and which cells are not tried again
schedule            all of it, one part after the other
rate_steps          the next step of a search for the highest rate
"""
