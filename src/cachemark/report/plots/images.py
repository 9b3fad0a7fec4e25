"""Specification → SVG or PNG with vl-convert, without a browser and without a network."""

import importlib
from types import ModuleType
from xml.etree import ElementTree

from cachemark.model.errors import UsageError
from cachemark.model.foreign_text import clean_all
from cachemark.report.document import Spec

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


# Written on every element, although they say what holds anyway, or what the page says itself.
_NEEDLESS = frozenset(
    {"pointer-events", "aria-hidden", "role", "aria-roledescription", "font-family", "class"}
)


def inline_svg(svg: str, *, name: str, alt: str) -> str:
    """The drawing as an image with a text: its size is the page's affair.

    What Vega says of a mark for screen readers becomes its tooltip: the image as a whole has a
    text alternative, and its figures a table.
    """
    root = ElementTree.fromstring(svg)
    family = next((node.get("font-family") for node in root.iter() if node.get("font-family")), "")
    _tidy(root)
    for attribute in ("version", "stroke-miterlimit"):
        root.attrib.pop(attribute, None)
    root.set("role", "img")
    root.set("class", name)
    root.set("aria-label", alt)
    if family:
        root.set("font-family", family)
    return ElementTree.tostring(root, encoding="unicode")


def _tidy(node: ElementTree.Element) -> None:
    # Inside a page elements of SVG need no namespace.
    node.tag = node.tag.rpartition("}")[2]
    label = node.attrib.pop("aria-label", "")
    is_mark = node.get("role") == "graphics-symbol" and not node.get("class")
    for attribute in _NEEDLESS & node.attrib.keys():
        del node.attrib[attribute]
    if node.get("opacity") == "1":
        del node.attrib["opacity"]
    for child in list(node):
        # Vega's background and foreground marks of groups are invisible here.
        if child.get("display") == "none" or child.get("class") in ("background", "foreground"):
            node.remove(child)
        else:
            _tidy(child)
    if label and is_mark:
        title = ElementTree.SubElement(node, "title")
        title.text = label
