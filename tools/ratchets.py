"""Ratchets: the largest file, function and complexity of each language may only get smaller.

So may the longest name of a test (in words), the orchestrator (its modules, its lines, and the most
modules that one of them imports), and the words of all pages in the root and in docs.

    python tools/ratchets.py          fail if a figure is above its limit, or a limit too generous
    python tools/ratchets.py --lower  write the figures of today as the new limits, where lower

The limits are in tools/ratchets.toml. Rust's functions are clippy's job (engine/clippy.toml).
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import grimp
import lizard

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tools" / "ratchets.toml"
LANGUAGES = {
    ".py": "python", ".rs": "rust", ".go": "go", ".java": "java", ".mjs": "javascript",
    ".php": "php", ".rb": "ruby", ".pm": "perl", ".pl": "perl", ".c": "c", ".h": "c",
}  # fmt: skip
# lizard takes Rust's lifetimes for strings.
NO_FUNCTIONS = frozenset({"rust"})
# lizard chooses its reader by the ending, and knows no .mjs.
ALIASES = {".mjs": ".js", ".pm": ".pl"}
# How far a limit may stand above its figure, so that several people who land changes at once need
# not each change the table.
ROOM = {"lines": 2000, "modules": 20, "words": 1000, "test_name_words": 10}
# The name of a test behind the words that make it one: Rust's attribute, or Python's prefix.
TEST = re.compile(
    r"#\[test\]\s+(?:#\[[^\n]*\]\s+)*fn (\w+)|^ *(?:async )?def test_(\w+)", re.MULTILINE
)


class Largest(NamedTuple):
    """The largest figure of a kind, and where it is."""

    value: int
    where: str


Figures = dict[str, dict[str, Largest]]


def sources() -> list[Path]:
    """Every source file that git tracks."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    paths = (ROOT / name for name in listed.stdout.split("\0") if name)
    return [path for path in paths if path.suffix in LANGUAGES and path.is_file()]


def measure(paths: Iterable[Path]) -> Figures:
    """The largest file (lines), function (lines of code) and complexity (McCabe) by language."""
    found: Figures = {}
    for path in paths:
        language = LANGUAGES[path.suffix]
        figures = found.setdefault(language, {})
        text = path.read_text(encoding="utf-8")
        name = str(path.relative_to(ROOT))
        _keep(figures, "file_lines", text.count("\n"), name)
        for rust, python in TEST.findall(text):
            words = len((rust or python).split("_"))
            _keep(figures, "test_name_words", words, f"{name}: {rust or python}")
        if language in NO_FUNCTIONS:
            continue
        known_as = str(path.with_suffix(ALIASES.get(path.suffix, path.suffix)))
        for function in lizard.analyze_file.analyze_source_code(known_as, text).function_list:
            where = f"{name}:{function.start_line} {function.name}"
            _keep(figures, "function_lines", function.nloc, where)
            _keep(figures, "complexity", function.cyclomatic_complexity, where)
    return found


def measure_house() -> dict[str, Largest]:
    """The sizes of the package and of all pages, and the module that imports the most others."""
    graph = grimp.build_graph("cachemark", cache_dir=None)
    fan_out = {name: len(graph.find_modules_directly_imported_by(name)) for name in graph.modules}
    widest = max(sorted(fan_out), key=lambda name: fan_out[name])
    files = sorted((ROOT / "src").rglob("*.py"))
    lines = sum(path.read_text(encoding="utf-8").count("\n") for path in files)
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    words = sum(len(page.read_text(encoding="utf-8").split()) for page in pages)
    return {
        "modules": Largest(len(files), "src"),
        "lines": Largest(lines, "src"),
        "fan_out": Largest(fan_out[widest], widest),
        "words": Largest(words, "*.md docs/**/*.md"),
    }


def _keep(figures: dict[str, Largest], kind: str, value: int, where: str) -> None:
    if kind not in figures or value > figures[kind].value:
        figures[kind] = Largest(value, where)


def complaints(figures: Figures, limits: dict[str, dict[str, int]]) -> list[str]:
    """A line for each figure above its limit, and for each limit above its figure."""
    lines: list[str] = []
    for language, kinds in sorted(figures.items()):
        for kind, largest in sorted(kinds.items()):
            limit = limits.get(language, {}).get(kind)
            if limit is None:
                lines.append(f"{language}: no limit for {kind}: add one to tools/ratchets.toml")
            elif largest.value > limit:
                lines.append(
                    f"{largest.where}: {kind} {largest.value} is above {limit}: make it smaller"
                )
            elif largest.value < limit - ROOM.get(kind, 0):
                lines.append(
                    f"{language}: {kind} is {largest.value} at most now, its limit {limit}:"
                    " run `make ratchets`"
                )
    return lines


def lowered(figures: Figures, limits: dict[str, dict[str, int]]) -> str:
    """The table of limits: each figure and its room, but no limit higher than it was."""
    text = "# The largest figures of each language. They only go down: `make ratchets`.\n"
    for language, kinds in sorted(figures.items()):
        text += f"\n[{language}]\n"
        for kind, largest in sorted(kinds.items()):
            roomy = largest.value + ROOM.get(kind, 0)
            text += f"{kind} = {min(limits.get(language, {}).get(kind, roomy), roomy)}\n"
    return text


def main(arguments: list[str]) -> int:
    """Check or lower the limits; 1 where something is to be done."""
    limits: dict[str, Any] = tomllib.loads(TABLE.read_text("utf-8")) if TABLE.exists() else {}
    figures = measure(sources()) | {"house": measure_house()}
    if "--lower" in arguments:
        TABLE.write_text(lowered(figures, limits), encoding="utf-8")
        limits = tomllib.loads(TABLE.read_text("utf-8"))
    lines = complaints(figures, limits)
    for line in lines:
        print(line, file=sys.stderr)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
