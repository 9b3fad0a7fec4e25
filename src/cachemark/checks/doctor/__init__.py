"""Is this machine suitable for measurements? Each check has a value, a result and stated limits."""

from cachemark.checks.doctor.all_checks import doctor
from cachemark.model.doctor_check import Check
from cachemark.model.machine_limits import Status

__all__ = ["Check", "Status", "doctor"]
