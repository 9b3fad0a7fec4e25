"""Is this machine suitable for measurements? Each check has a value, a result and stated limits."""

from cachemark.checks.doctor.all_checks import doctor
from cachemark.model.machine_limits import Check, Status

__all__ = ["Check", "Status", "doctor"]
