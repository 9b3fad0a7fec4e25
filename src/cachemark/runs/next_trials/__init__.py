"""Decides from the outcomes so far which part is played next. Pure.

stopping            which cells of the next sitting are still played
schedule            trials, replays, steps of a search, sittings: one part after the other
"""
