"""The machine: its facts, CPU placement, noise during a trial, limits, and child processes."""
