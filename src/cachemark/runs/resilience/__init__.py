"""Clients whose server misbehaves: faults, the judge, and the play of a cell."""
