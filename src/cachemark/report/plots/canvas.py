"""A drawing in pixels as a Vega-Lite specification: rectangles, lines, arrows and words."""

from cachemark.report.document import Spec
from cachemark.report.plots.layout import FONT, SCHEMA, six_digits
from cachemark.report.plots.palette import ColourRole, light

_Values = list[dict[str, float | str]]


class Canvas:
    """The marks of a drawing; the origin is the upper left corner. Later marks cover others."""

    def __init__(self) -> None:
        self._layers: list[tuple[Spec, _Values]] = []

    def rect(
        self, x: float, x2: float, y: float, y2: float, role: ColourRole, *, hollow: bool = False
    ) -> None:
        """A filled rectangle, or its outline."""
        mark: Spec = (
            {"type": "rect", "filled": False, "strokeWidth": 1.3} if hollow else {"type": "rect"}
        )
        self._add(mark, x=x, x2=x2, y=y, y2=y2, colour=light(role))

    def vertical(self, x: float, y: float, y2: float, role: ColourRole) -> None:
        """A thin vertical line."""
        mark: Spec = {"type": "rule", "strokeWidth": 1}
        self._add(mark, x=x, x2=x, y=y, y2=y2, colour=light(role))

    def horizontal(self, x: float, x2: float, y: float, role: ColourRole, thick: float) -> None:
        """A horizontal line."""
        mark: Spec = {"type": "rule", "strokeWidth": thick}
        self._add(mark, x=x, x2=x2, y=y, y2=y, colour=light(role))

    def arrow(self, x: float, y: float, role: ColourRole) -> None:
        """A small arrow head that points to the right."""
        mark = {"type": "point", "shape": "triangle-right", "filled": True, "size": 30,
                "opacity": 1}  # fmt: skip
        self._add(mark, x=x, y=y, colour=light(role))

    def words(
        self,
        x: float,
        y: float,
        words: str,
        role: ColourRole = "ink",
        *,
        size: int = 11,
        align: str = "left",
        bold: bool = False,
    ) -> None:
        """A line of text; `y` is its vertical centre."""
        weight = "bold" if bold else "normal"
        mark = {"type": "text", "baseline": "middle", "fontSize": size, "align": align,
                "fontWeight": weight}  # fmt: skip
        self._add(mark, x=x, y=y, words=words, colour=light(role))

    def _add(self, mark: Spec, **value: float | str) -> None:
        rounded: dict[str, float | str] = {
            k: six_digits(v) if isinstance(v, float) else v for k, v in value.items()
        }
        if self._layers and self._layers[-1][0] == mark:
            self._layers[-1][1].append(rounded)
        else:
            self._layers.append((mark, [rounded]))

    def specification(self, width: int, height: int, description: str) -> Spec:
        """The whole drawing as one view of this size."""
        return {
            "$schema": SCHEMA,
            "description": description,
            "width": width,
            "height": height,
            "padding": 0,
            "autosize": "none",
            "background": light("paper"),
            "layer": [_layer(mark, values, width, height) for mark, values in self._layers],
            "config": {"font": FONT, "view": {"stroke": None}},
        }


def _layer(mark: Spec, values: _Values, width: int, height: int) -> Spec:
    def across(field: str, size: int, **more: bool) -> Spec:
        scale = {"domain": [0, size], "nice": False, **more}
        return {"field": field, "type": "quantitative", "scale": scale, "axis": None}

    encoding: Spec = {
        "x": across("x", width),
        "y": across("y", height, reverse=True),
        "color": {"field": "colour", "type": "nominal", "scale": None, "legend": None},
    }
    encoding |= {end: {"field": end} for end in ("x2", "y2") if end in values[0]}
    if "words" in values[0]:
        encoding["text"] = {"field": "words", "type": "nominal"}
    return {"data": {"values": values}, "mark": mark, "encoding": encoding}
