"""The documentation site: it builds, its links lead somewhere, it loads nothing from elsewhere."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.docs.site_links import BuiltPage, broken_links, is_elsewhere, read_pages
from tools.docs_pages import Sources, printed_pages, site_text, sources


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, BuiltPage]:
    return read_pages(site)


def nav_pages(nav: Any) -> Iterator[str]:
    """The pages of a nav, in order."""
    for entry in nav:
        for value in entry.values():
            yield from [value] if isinstance(value, str) else nav_pages(value)


def test_each_page_is_in_the_navigation_once(pages: dict[str, BuiltPage]) -> None:
    settings = tomllib.loads((ROOT / "docs" / "zensical.toml").read_text(encoding="utf-8"))
    listed = sorted(nav_pages(settings["project"]["nav"]))
    assert listed == sorted({**sources(ROOT).pages, **printed_pages()})
    assert [name.replace(".md", ".html") for name in listed] == sorted(pages)


def test_links_lead_somewhere(site: Path, pages: dict[str, BuiltPage]) -> None:
    assert broken_links(site, pages) == []


def test_links_of_pages_are_kept(pages: dict[str, BuiltPage]) -> None:
    assert "architecture.html#glossary" in pages["methodology-work.html"].links
    assert "pictures/quick.png" in pages["index.html"].loads


def test_nothing_is_loaded_from_elsewhere(pages: dict[str, BuiltPage]) -> None:
    assert [load for page in pages.values() for load in page.loads if is_elsewhere(load)] == []


def test_no_page_has_an_inline_script(pages: dict[str, BuiltPage]) -> None:
    assert {name: page.inline_scripts for name, page in pages.items() if page.inline_scripts} == {}


def test_the_licences_of_its_scripts_are_there(site: Path) -> None:
    assets = site / "assets"
    for name in ("LICENSE.zensical.md", "LICENSE.lucide", "javascripts/LICENSE"):
        assert "opyright" in (assets / name).read_text(encoding="utf-8"), name


def test_code_prints_commands_and_verdicts(pages: dict[str, BuiltPage]) -> None:
    assert "cachemark-run" in pages["commands.html"].anchors
    assert {"invalid", "evictions"} <= pages["verdicts.html"].anchors


def test_links_become_those_of_the_site() -> None:
    where = Sources(
        ROOT,
        {"index.md": "README.md", "ci.md": "docs/ci.md", "workers-go.md": "workers/go/README.md"},
        {"pictures/a.png": "docs/pictures/a.png"},
    )
    readme = (
        "[a\ngate](docs/ci.md#gate) `[x](docs/ci.md)` ![p](docs/pictures/a.png) [s](src/a.py)\n"
    )
    assert site_text(readme, "index.md", where) == (
        "[a\ngate](ci.md#gate) `[x](docs/ci.md)` ![p](pictures/a.png) s\n"
    )
    fenced = "```\n[x](../README.md)\n```\n[x](../../README.md) [w](https://example.org) [h](#h)\n"
    assert site_text(fenced, "workers-go.md", where) == (
        "```\n[x](../README.md)\n```\n[x](index.md) [w](https://example.org) [h](#h)\n"
    )


def test_the_test_can_fail(tmp_path: Path) -> None:
    text = '<h2 id="a"></h2><a href="#a"></a><a href="#b"></a><a href="x.html"></a><a href="."></a>'
    text += '<img src="no.png"><script>1</script><script src="https://example.org/x.js"></script>'
    (tmp_path / "index.html").write_text(text, encoding="utf-8")
    pages = read_pages(tmp_path)
    assert broken_links(tmp_path, pages) == [
        "index.html: #b",
        "index.html: x.html",
        "index.html: no.png",
    ]
    assert pages["index.html"].inline_scripts == 1
    assert [load for load in pages["index.html"].loads if is_elsewhere(load)] == [
        "https://example.org/x.js"
    ]
