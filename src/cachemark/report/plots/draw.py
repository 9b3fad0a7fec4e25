"""Specification → SVG or PNG, by vl-convert: Vega-Lite without a browser, and without a network."""

from __future__ import annotations

from types import ModuleType

from cachemark.errors import UsageError
from cachemark.report.plots.value import Spec

# Twice the pixels of the screen: sharp on paper.
_SCALE = 2.0


def svg(spec: Spec) -> str:
    """The plot as SVG text. Raises UsageError when vl-convert is not installed."""
    return str(_library().vegalite_to_svg(spec, allowed_base_urls=[]))


def png(spec: Spec) -> bytes:
    """The plot as PNG. Raises UsageError when vl-convert is not installed."""
    return bytes(_library().vegalite_to_png(spec, scale=_SCALE, allowed_base_urls=[]))


def _library() -> ModuleType:
    # Late, as only these forms need it and it is an optional part of 84 MB.
    try:
        import vl_convert  # noqa: PLC0415
    except ImportError as error:
        raise UsageError(
            "plots are drawn by vl-convert, which is not installed",
            "install it: pip install 'cachemark[export]'",
        ) from error
    return vl_convert
