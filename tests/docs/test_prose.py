"""The pages that people read: their lines wrap, and their links lead somewhere."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/**/*.md", "workers/*/README.md")
    for page in ROOT.glob(pattern)
)
LIMIT = 120

_LINK = re.compile(r"\]\(([^()\s]+)\)")
_CODE = re.compile(r"`[^`]*`")
# In code: a path from the root. Capitals and dots are placeholders and what set-ups make.
_PATH = re.compile(
    r"`((?:src/cachemark|tests|engine|workers|docs|conformance|benchmarks)/[^`\s]*)`"
)
_PLACEHOLDER = re.compile(r"[A-Z*{…]|/\.")
_HEADING = re.compile(r"#{1,6} +(.+?) *#*")
_NOT_IN_AN_ANCHOR = re.compile(r"[^\w\- ]")


def lines_of(text: str) -> Iterator[tuple[int, str]]:
    """The numbered lines of a page that are not in a fenced block of code."""
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        mark = line.lstrip()[:3]
        if fence:
            fence = "" if mark == fence else fence
        elif mark in ("```", "~~~"):
            fence = mark
        else:
            yield number, line


def too_long(text: str) -> list[int]:
    """The lines of prose with 120 characters or more. A row of a table cannot wrap."""
    return [
        number for number, line in lines_of(text) if len(line) >= LIMIT and not line.startswith("|")
    ]


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found: set[str] = set()
    times: dict[str, int] = {}
    for _, line in lines_of(text):
        heading = _HEADING.fullmatch(line)
        if heading:
            words = _NOT_IN_AN_ANCHOR.sub("", heading[1].lower()).replace(" ", "-")
            count = times[words] = times.get(words, 0) + 1
            found.add(words if count == 1 else f"{words}-{count - 1}")
    return found


def links(text: str) -> list[tuple[int, str]]:
    """The links of a page that stay within the repository, with their lines."""
    return [
        (number, link)
        for number, line in lines_of(text)
        for link in _LINK.findall(_CODE.sub("", line))
        if not re.match(r"[a-z]+:", link)
    ]


def missing_paths(text: str) -> list[str]:
    """The paths of a page, written as code, that do not exist in the checkout."""
    named = (path for _, line in lines_of(text) for path in _PATH.findall(line))
    return [path for path in named if not _PLACEHOLDER.search(path) and not (ROOT / path).exists()]


def leads_somewhere(link: str, page: Path) -> bool:
    """Whether a link's file exists below the root, and has its anchor."""
    path, _, anchor = unquote(link).partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.is_relative_to(ROOT) or not target.exists():
        return False
    return not anchor or anchor in anchors(target.read_text(encoding="utf-8"))


def test_pages_are_found() -> None:
    assert {"README.md", "METHODOLOGY.md", "docs/tape.md"} <= set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_prose_wraps(page: str) -> None:
    long = too_long((ROOT / page).read_text(encoding="utf-8"))
    assert long == [], f"lines of {page} with {LIMIT} characters or more"


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    path = ROOT / page
    broken = [
        f"{page}:{number}: {link}"
        for number, link in links(path.read_text(encoding="utf-8"))
        if not leads_somewhere(link, path)
    ]
    assert broken == []


@pytest.mark.parametrize("page", PAGES)
def test_paths_exist(page: str) -> None:
    missing = missing_paths((ROOT / page).read_text(encoding="utf-8"))
    assert missing == []


def test_the_test_can_fail(tmp_path: Path) -> None:
    page = f"# A `title`, twice\n{'x' * 120}\n```\n{'x' * 120}\n[a](no.md)\n```\n| {'x' * 120} |\n"
    page += "## A title twice\n[a](no.md) `[b](no.md)` [c](https://example.org) [d](#a)\n"
    assert too_long(page) == [2]
    assert anchors(page) == {"a-title-twice", "a-title-twice-1"}
    assert links(page) == [(9, "no.md"), (9, "#a")]
    assert not leads_somewhere("no.md", ROOT / "README.md")
    assert not leads_somewhere("METHODOLOGY.md#no-such-heading", ROOT / "README.md")
    assert not leads_somewhere(str(tmp_path), ROOT / "README.md")
    assert leads_somewhere("docs/tape.md", ROOT / "README.md")
    paths = "`tests/no.py` `tests/docs` `workers/LANGUAGE/setup` `workers/python/.venv` `tests/a b`"
    assert missing_paths(paths) == ["tests/no.py"]
