"""Specification → SVG or PNG with vl-convert, without a browser and without a network."""

import importlib
from types import ModuleType

from cachemark.model.errors import UsageError
from cachemark.model.foreign_text import clean_all
from cachemark.report.plots.plot import Spec

# Twice the pixels of the screen: sharp on paper.
_SCALE = 2.0


def svg(spec: Spec) -> str:
    """The plot as SVG text. Raises UsageError if vl-convert is not installed."""
    return str(_library().vegalite_to_svg(clean_all(spec), allowed_base_urls=[]))


def png(spec: Spec, scale: float = _SCALE) -> bytes:
    """The plot as PNG, losslessly compressed. Raises UsageError as `svg` does."""
    raw = bytes(_library().vegalite_to_png(clean_all(spec), scale=scale, allowed_base_urls=[]))
    return bytes(_optional("oxipng").optimize_from_memory(raw, level=2))


def _library() -> ModuleType:
    return _optional("vl_convert")


def _optional(name: str) -> ModuleType:
    # Late, as only these forms need it and it is an optional part of 86 MB.
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(
            f"plots are drawn with {name}, which is not installed",
            "install it: pip install 'cachemark[export]'",
        ) from error
