"""What a client costs against a server that costs nothing: its floor, and how fast it is clean."""

from cachemark.runs.calibrate.calibration import Calibration, Floor, Step, headroom
from cachemark.runs.calibrate.calibration_store import (
    append_calibration,
    latest_calibrations,
    load_calibrations,
)
from cachemark.runs.calibrate.sweep import CalibrationSettings, calibrate

__all__ = [
    "Calibration",
    "CalibrationSettings",
    "Floor",
    "Step",
    "append_calibration",
    "calibrate",
    "headroom",
    "latest_calibrations",
    "load_calibrations",
]
