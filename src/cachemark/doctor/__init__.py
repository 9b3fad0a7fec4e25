"""Is this machine fit to measure on? Each check has a value, a judgement, and stated limits."""

from cachemark.doctor.check import Check, Judgement
from cachemark.doctor.examination import doctor

__all__ = ["Check", "Judgement", "doctor"]
