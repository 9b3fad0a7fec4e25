"""The colours of the plots as rules of a style sheet."""

from __future__ import annotations

from cachemark.report.plots.palette import ROLES


def variables() -> str:
    """A custom property for each role: the light colour, or both if the browser can choose."""
    light = "".join(f"--{role}:{colour.light};" for role, colour in ROLES.items())
    both = "".join(
        f"--{role}:light-dark({colour.light},{colour.dark});" for role, colour in ROLES.items()
    )
    return (
        f":root{{{light}}}\n"
        f"@supports (color:light-dark(red,red)){{:root{{color-scheme:light dark;{both}}}}}"
    )


def plot_colour_rules() -> str:
    """Rules that replace the light colours in plots with the properties of their roles."""
    rules: list[str] = []
    for role, colour in ROLES.items():
        rules += [
            f'.plot svg [{channel}="{colour.light}"]{{{channel}:var(--{role})}}'
            for channel in ("fill", "stroke")
        ]
    return "\n".join(rules)
