"""A client's own cost, against a responder that costs nothing: its floor, its clean rate."""

from cachemark.model.calibration import Calibration, CalibrationStep, Floor, headroom
from cachemark.runs.calibrate.calibration_store import (
    append_calibration,
    latest_calibrations,
    load_calibrations,
)
from cachemark.runs.calibrate.sweep import CalibrationSettings, calibrate

__all__ = [
    "Calibration",
    "CalibrationSettings",
    "CalibrationStep",
    "Floor",
    "append_calibration",
    "calibrate",
    "headroom",
    "latest_calibrations",
    "load_calibrations",
]
