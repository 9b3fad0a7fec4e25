"""The pages of the documentation site, as text: the checkout's, and the ones that code prints.

A page of the checkout keeps its words; only its links change, as pages of several folders become
pages of one. A link to a file that is no page, such as a source file, becomes plain text.
"""

from __future__ import annotations

import os.path
import re
from pathlib import Path

import msgspec

from cachemark.analysis.verdict.explanations import Explanation, explanations
from cachemark.cli.program import app
from cachemark.model.protocol_docs import document

_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
_ELSEWHERE = re.compile(r"[a-z]+:")
_CODE_SPAN = re.compile(r"(`+[^`]*`+)")
_FENCE_LINE = re.compile(r"(^ *(?:```|~~~).*\n)", re.MULTILINE)
_CONTENTS = re.compile(r"^## Table of Contents$.*?(?=^## )", re.MULTILINE | re.DOTALL)


class Sources(msgspec.Struct, frozen=True):
    """`pages`: page of the site → Markdown file below `root`. `files`: what goes with them."""

    root: Path
    pages: dict[str, str]
    files: dict[str, str]

    def site_path(self, source: str) -> str | None:
        """Where the site has a file of the checkout, if it does."""
        both = {**self.pages, **self.files}
        return next((name for name, path in both.items() if path == source), None)


def sources(root: Path) -> Sources:
    """The files that the site takes from a checkout."""
    pages = {"index.md": "README.md"}
    pages |= {p.name.lower(): p.name for p in root.glob("*.md") if p.name != "README.md"}
    pages |= {p.name: f"docs/{p.name}" for p in (root / "docs").glob("*.md")}
    pages["workers.md"] = "workers/README.md"
    for page in (root / "workers").glob("*/README.md"):
        pages[f"workers-{page.parent.name}.md"] = page.relative_to(root).as_posix()
    files = {
        path.relative_to(root / "docs").as_posix(): path.relative_to(root).as_posix()
        for pattern in ("pictures/*.png", "examples/*", "*.json", "site.*")
        for path in (root / "docs").glob(pattern)
    }
    return Sources(root, dict(sorted(pages.items())), files)


def text_of(page: str, where: Sources) -> str:
    """The Markdown of a page of the checkout; of the protocol, with the fields of each message."""
    if page == "protocol.md":
        return document()
    return (where.root / where.pages[page]).read_text(encoding="utf-8")


def printed_pages() -> dict[str, str]:
    """The pages that are printed from the code."""
    return {"commands.md": commands_page(), "verdicts.md": verdicts_page()}


def commands_page() -> str:
    """Every verb and its options, as `cachemark VERB --help` prints them."""
    text = app.generate_docs(output_format="markdown", heading_level=1, usage_name="cachemark")
    head = "# Commands\n\n[Exit statuses](ci.md#exit-statuses) of all verbs are in one table.\n"
    return _CONTENTS.sub("", text).replace("# cachemark\n", head, 1)


def verdicts_page() -> str:
    """The text of `cachemark explain` for each verdict and each rule."""
    parts = [
        "# Verdicts and rules\n",
        "Each trial has one verdict. Each rule that speaks against a trial is named beside it. "
        "`cachemark explain NAME` prints the same text.\n",
        "## Verdicts\n",
        *(_explained(name, each) for name, each in explanations().verdicts.items()),
        "## Rules\n",
        *(_explained(name, each) for name, each in explanations().rules.items()),
    ]
    return "\n".join(parts)


def _explained(name: str, explanation: Explanation) -> str:
    remedy = f"\n*Remedy:* {explanation.remedy}\n" if explanation.remedy else ""
    return f"### `{name}`\n\n{explanation.meaning}\n{remedy}"


def site_text(text: str, page: str, where: Sources) -> str:
    """A page's Markdown with the links of the site. Blocks and spans of code stay as they are."""
    parts: list[str] = []
    fence = ""
    # Not line by line: the text of a link may be on two lines.
    for part in _FENCE_LINE.split(text):
        mark = part.lstrip()[:3] if _FENCE_LINE.fullmatch(part) else ""
        if mark and fence in ("", mark):
            fence = "" if fence else mark
            parts.append(part)
        else:
            parts.append(part if fence else _linked(part, page, where))
    return "".join(parts)


def _linked(prose: str, page: str, where: Sources) -> str:
    spans: list[str] = []

    def keep(span: re.Match[str]) -> str:
        spans.append(span[1])
        return f"\0{len(spans) - 1}\0"

    linked = _LINK.sub(lambda link: _link(link, page, where), _CODE_SPAN.sub(keep, prose))
    return re.sub(r"\0(\d+)\0", lambda number: spans[int(number[1])], linked)


def _link(link: re.Match[str], page: str, where: Sources) -> str:
    mark, text, target = link.groups()
    if _ELSEWHERE.match(target) or target.startswith("#"):
        return link[0]
    path, hash_, anchor = target.partition("#")
    source = os.path.normpath(Path(where.pages[page]).parent / path)
    site_path = where.site_path(source)
    return text if site_path is None else f"{mark}[{text}]({site_path}{hash_}{anchor})"
