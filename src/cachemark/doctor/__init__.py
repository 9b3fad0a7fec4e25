"""Is this machine fit to measure on? Each check has a value, a judgement, and stated limits."""

from cachemark.doctor.check import Check
from cachemark.doctor.examination import doctor
from cachemark.limits import Judgement

__all__ = ["Check", "Judgement", "doctor"]
