"""The environment of templates: each text is escaped; the page's parts and colours are at hand."""

from collections.abc import Callable
from functools import cache
from importlib import resources

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from cachemark.report.plots.palette import ROLES

_PAGE = "cachemark.report.html"


@cache
def environment(
    package: str = _PAGE, finalize: Callable[[object], object] | None = None
) -> Environment:
    """The templates of a package, then the templates of the report's page."""
    made = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in dict.fromkeys((package, _PAGE))]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=finalize,
    )
    # The drawings are our own: their texts were escaped when they were written.
    made.filters["drawing"] = Markup
    return made


def style_sheet(package: str = _PAGE) -> str:
    """The style sheet of the page without the colours of plots, and behind it a package's own."""
    own = f"\n{page_file('style.css', package)}" if package != _PAGE else ""
    return f"{variables()}\n{page_file('style.css')}{own}"


def page_file(name: str, package: str = _PAGE) -> str:
    """A file beside the templates of a package."""
    return (resources.files(package) / "templates" / name).read_text("utf-8")


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
