"""The text of `cachemark --help`: the verbs in groups. It imports nothing that takes long."""

import shutil
import textwrap
import tomllib
from pathlib import Path

SUMMARY = "Measures memcached clients and servers of all languages with the same work."
EPILOGUE = (
    "Exit status: 0 done, 1 failed, 2 bad input, 130 interrupted. "
    "`cachemark VERB --help` says what 1 and 3 mean for a verb. `cachemark-engine --help` has "
    "tools that need no Python, such as `stampede`: many callers of one key that expires."
)
VERBS: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("front_page.toml").read_text(encoding="utf-8")
)
_OPTIONS = {"--help, -h": "Print this page, or that of a verb", "--version": "Print the version"}
_WIDEST_COLUMNS = 100


def front_page() -> str:
    """The page, as wide as the terminal."""
    columns = min(shutil.get_terminal_size().columns, _WIDEST_COLUMNS)
    names = 2 + max(len(name) for rows in (*VERBS.values(), _OPTIONS) for name in rows)
    lines = ["Usage: cachemark VERB [OPTIONS]", "", *_folded(SUMMARY, columns), ""]
    for title, rows in {**VERBS, "Options": _OPTIONS}.items():
        lines.append(title)
        for name, words in rows.items():
            lines += _folded(words, columns, f"  {name:{names}}")
        lines.append("")
    return "\n".join([*lines, *_folded(EPILOGUE, columns), ""])


def _folded(words: str, columns: int, first: str = "") -> list[str]:
    rest = " " * len(first)
    return textwrap.wrap(words, columns, initial_indent=first, subsequent_indent=rest)
