"""What is played next, decided from the outcomes so far. Pure.

questions           what sittings are to answer, and when a run looks at its answers
stopping            which cells of the next sitting are still played
replays, giving_up  which trials are played once more, and which cells are not tried again
schedule            all of it, one part after the other
rate_steps          the next step of a search for the highest rate
"""
