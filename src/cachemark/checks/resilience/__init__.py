"""What a client does when its server misbehaves: faults, the judge, and how a cell is played."""
