"""The machine: its facts, CPU placement, noise during a trial, limits, and child processes."""

from cachemark.host.awake import awake
from cachemark.host.facts import facts
from cachemark.host.noise import NoiseMonitor
from cachemark.host.placement import apart, beside, cores, placement, run_on, usable_cpus
