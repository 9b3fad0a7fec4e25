"""Build the documentation site of plain Markdown, with Zensical, into site/ (or another folder).

    python -m tools.docs_site [FOLDER]

FOLDER/pages has the Markdown, FOLDER/html the site. It asks no other host for anything, and
`python -m http.server --directory site/html` shows it.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

from tools.docs_pages import Sources, printed_pages, site_text, sources, text_of

ROOT = Path(__file__).resolve().parent.parent
CONFIGURATION = "zensical.toml"

_INLINE_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
# Both need to know the site's address.
_UNUSED = ("404.html", "sitemap.xml")


def main() -> int:
    """Build the site, and say where it is."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site"
    status = build(folder)
    if status == 0:
        print(f"docs: {folder / 'html' / 'index.html'}")
    return status


def build(folder: Path) -> int:
    """Build the site in a folder. A link to a page that does not exist is an error."""
    shutil.rmtree(folder, ignore_errors=True)
    write_pages(sources(ROOT), folder / "pages")
    shutil.copyfile(ROOT / "docs" / CONFIGURATION, folder / CONFIGURATION)
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        print(ended.stdout + ended.stderr, file=sys.stderr)
        return ended.returncode
    for name in _UNUSED:
        (folder / "html" / name).unlink(missing_ok=True)
    copy_licences(folder / "html" / "assets")
    for page in (folder / "html").glob("*.html"):
        page.write_text(without_inline_scripts(page), encoding="utf-8")
    return 0


def write_pages(where: Sources, folder: Path) -> None:
    """Write all pages and what goes with them into a folder."""
    folder.mkdir(parents=True)
    for page in where.pages:
        (folder / page).write_text(site_text(text_of(page, where), page, where), encoding="utf-8")
    for page, text in printed_pages().items():
        (folder / page).write_text(text, encoding="utf-8")
    for name, source in where.files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(where.root / source, folder / name)


def copy_licences(assets: Path) -> None:
    """Put the licences of the theme and of its icons beside its scripts.

    The licences of what these scripts contain are there already.
    """
    package = distribution("zensical")
    (own,) = (file for file in package.files or [] if "licenses" in file.parts)
    icons = package.locate_file("zensical/templates/.icons/lucide/LICENSE")
    shutil.copyfile(str(own.locate()), assets / "LICENSE.zensical.md")
    shutil.copyfile(str(icons), assets / "LICENSE.lucide")


def without_inline_scripts(page: Path) -> str:
    """A page whose scripts are files, so that a strict content security policy allows them."""

    def to_file(script: re.Match[str]) -> str:
        name = f"{hashlib.sha256(script[1].encode()).hexdigest()[:16]}.js"
        (page.parent / "assets" / "javascripts" / name).write_text(script[1], encoding="utf-8")
        return f'<script src="assets/javascripts/{name}"></script>'

    return _INLINE_SCRIPT.sub(to_file, page.read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.exit(main())
