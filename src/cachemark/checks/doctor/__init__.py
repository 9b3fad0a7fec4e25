"""Is this machine fit to measure on? Each check has a value, a judgement, and stated limits."""

from cachemark.checks.doctor.all_checks import doctor
from cachemark.checks.doctor.check import Check
from cachemark.host.limits import Judgement

__all__ = ["Check", "Judgement", "doctor"]
