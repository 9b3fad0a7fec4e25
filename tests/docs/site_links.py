"""The links of built pages: which of them lead nowhere, and what pages load."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADS = {("script", "src"), ("img", "src"), ("link", "href"), ("source", "src"), ("iframe", "src")}


class BuiltPage(HTMLParser):
    """The links of a page, the files that it loads, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.inline_scripts = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value for name, value in attrs if value is not None}
        self.anchors |= {value for name, value in named.items() if name in ("id", "name")}
        self.loads += [value for name, value in named.items() if (tag, name) in _LOADS]
        if tag == "a" and "href" in named:
            self.links.append(named["href"])
        # Data is no program.
        self.inline_scripts += tag == "script" and "src" not in named and "type" not in named


def read_pages(folder: Path) -> dict[str, BuiltPage]:
    """The pages of a built site, by file name."""
    paths = sorted(folder.glob("*.html"))
    return {path.name: BuiltPage(path.read_text(encoding="utf-8")) for path in paths}


def is_elsewhere(address: str) -> bool:
    """Whether an address is one of another host, such as `https://…` or `//…`."""
    parts = urlsplit(address)
    return bool(parts.scheme or parts.netloc) and parts.scheme != "data"


def broken_links(folder: Path, pages: dict[str, BuiltPage]) -> list[str]:
    """Links to a file that the site does not have, or to an anchor that the page does not have."""
    return [
        f"{name}: {link}"
        for name, page in pages.items()
        for link in (*page.links, *page.loads)
        if not is_elsewhere(link) and not link.startswith("data:")
        if not _leads_somewhere(folder, pages, name, link)
    ]


def _leads_somewhere(folder: Path, pages: dict[str, BuiltPage], name: str, link: str) -> bool:
    parts = urlsplit(link)
    target = (folder / unquote(parts.path)).resolve() if parts.path else folder / name
    # The home page is also `.`.
    target = target / "index.html" if target.is_dir() else target
    if not target.is_relative_to(folder.resolve()) or not target.is_file():
        return False
    page = pages.get(target.name)
    return not parts.fragment or page is None or unquote(parts.fragment) in page.anchors
