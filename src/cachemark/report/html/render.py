"""Page → HTML with Jinja2. All texts from workers and servers are escaped."""

import base64
import hashlib

from markupsafe import Markup

from cachemark.model.foreign_text import clean_all
from cachemark.report.document import Table
from cachemark.report.html.environment import environment, page_file, plot_colour_rules, style_sheet
from cachemark.report.html.page import Download, page
from cachemark.report.model import Report


def render(report: Report, _width: int | None) -> str:
    """The report as one HTML file; the width is not used, since the page fits any width."""
    report = clean_all(report)
    made = page(report)
    return render_page("page.html.jinja", made.downloads, page=made, report=report)


def render_page(template: str, downloads: list[Download], **values: object) -> str:
    """A page with the frame, the style and the script of all pages."""
    page_of = environment().get_template(template)
    return page_of.render(
        downloads=downloads,
        sides_of=column_classes,
        style=Markup(f"{style_sheet()}\n{plot_colour_rules()}"),
        script=Markup(script_text()),
        policy=content_policy(),
        **values,
    )


def script_text() -> str:
    """The page's script; other pages use it too."""
    return page_file("script.js")


def content_policy() -> str:
    """The content security policy of the page, for a server that sends it as a header."""
    return script_policy(script_text())


def script_policy(script: str) -> str:
    """A content security policy that allows this script, and no other."""
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )


def column_classes(table: Table) -> list[str]:
    """A CSS class for each column: text is aligned left, figures right."""
    return [
        "words"
        if not n or table.prose or any(row[n][:1].isalpha() for row in table.rows)
        else "figures"
        for n in range(len(table.columns))
    ]
