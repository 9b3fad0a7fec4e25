"""The colours of the plots: for each role, one for a light background and one for a dark one.

A plot is drawn with the light colours. Each of them has one role only, so a style sheet can replace
it with the dark one by a rule on the attribute. The colours of the series come from Okabe and Ito,
made darker or lighter until text in them is readable. Dashes and shapes show the same information
as the colours.
"""

from typing import Any, Literal

import msgspec


class Colour(msgspec.Struct, frozen=True, kw_only=True):
    """The colours of one role, on a light and on a dark background."""

    light: str
    dark: str


ColourRole = Literal[
    "paper", "ink", "faint", "grid", "first", "other", "yardstick",
    "series1", "series2", "series3", "series4", "series5", "series6",
]  # fmt: skip

ROLES: dict[ColourRole, Colour] = {
    "paper": Colour(light="#ffffff", dark="#171b20"),
    "ink": Colour(light="#1b1f24", dark="#eceff3"),
    "faint": Colour(light="#57606a", dark="#a5afba"),
    "grid": Colour(light="#e4e7eb", dark="#2d343c"),
    # Bars: the first, the others, and yardsticks.
    "first": Colour(light="#0a5ea8", dark="#4a9be4"),
    "other": Colour(light="#6c96c3", dark="#4f7399"),
    "yardstick": Colour(light="#8b929b", dark="#727b86"),
    "series1": Colour(light="#0072b2", dark="#58b6f0"),
    "series2": Colour(light="#b84700", dark="#ff9a5c"),
    "series3": Colour(light="#00795b", dark="#35c9a0"),
    "series4": Colour(light="#9a3d85", dark="#e491cd"),
    "series5": Colour(light="#7b5d00", dark="#e2c150"),
    "series6": Colour(light="#3c4148", dark="#cbd1d8"),
}

_DARK = {colour.light: colour.dark for colour in ROLES.values()}

SERIES: tuple[ColourRole, ...] = ("series1", "series2", "series3", "series4", "series5", "series6")
DASHES: tuple[list[int], ...] = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [10, 4], [4, 2, 1, 2])
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")


class LineStyle(msgspec.Struct, frozen=True, kw_only=True):
    """A line's style, unlike that of all others: colour, dash and shape of its points."""

    role: ColourRole
    dash: list[int]
    shape: str


def line_style(series: int, *, grey: bool = False) -> LineStyle:
    """A series' style by its number: from the seventh on, colours repeat with other dashes."""
    count = len(SERIES)
    # The sixth colour is nearly grey: no yardstick has a dash that this colour has soon.
    series += 3 if grey else 0
    return LineStyle(
        role="faint" if grey else SERIES[series % count],
        dash=DASHES[(series + series // count) % count],
        shape=SHAPES[(series + series // count) % count],
    )


Theme = Literal["light", "dark"]


def identity(series: int | None, *, first: bool) -> ColourRole:
    """The colour of a client's or server's bar: its own, or one of two where there are too many."""
    if series is not None:
        return SERIES[series]
    return "first" if first else "other"


def themed(value: Any, theme: Theme) -> Any:
    """A specification with the colours of a theme; it was made with the light ones."""
    if theme == "light":
        return value
    if isinstance(value, dict):
        return {key: themed(item, theme) for key, item in value.items()}
    if isinstance(value, list):
        return [themed(item, theme) for item in value]
    return _DARK.get(value, value) if isinstance(value, str) else value


def light(role: ColourRole) -> str:
    """The colour with which a plot is drawn."""
    return ROLES[role].light
