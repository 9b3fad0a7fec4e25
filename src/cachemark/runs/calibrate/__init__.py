"""What a client costs against a server that costs nothing: its floor, and how fast it is clean."""

from cachemark.runs.calibrate.calibration_store import append, kept, latest
from cachemark.runs.calibrate.sweep import Shape, calibrate
from cachemark.runs.calibrate.value import Calibration, Floor, Step, headroom

__all__ = [
    "Calibration",
    "Floor",
    "Shape",
    "Step",
    "append",
    "calibrate",
    "headroom",
    "kept",
    "latest",
]
