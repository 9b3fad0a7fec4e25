"""What a client costs against a server that costs nothing: its floor, and how fast it is clean."""

from cachemark.calibrate.kept import append, kept, latest
from cachemark.calibrate.sweep import Shape, calibrate
from cachemark.calibrate.value import Calibration, Floor, Step, headroom

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
