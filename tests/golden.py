"""Golden files: the output that was last reviewed. Other output is written beside, as `.got`."""

import difflib
import json
import math
import re
from pathlib import Path
from typing import Any

# Documents hold nine significant digits. The last of them may differ from CPU to CPU.
RELATIVE_TOLERANCE = 1e-8


def main_of(page: str) -> str:
    """The text of a page without its drawings, style, script and files: they have own tests."""
    main = page[page.index("<main>") : page.index('<section aria-labelledby="data">')]
    return re.sub(r"<svg.*?</svg>", "<svg></svg>", main, flags=re.DOTALL)


def assert_golden(form: str, text: str, golden: Path) -> None:
    """Compare `text` with a golden file: JSON by value, main_of a page, others byte for byte."""
    text = main_of(text) if form == "html" else text
    expected = golden.read_text(encoding="utf-8") if golden.exists() else ""
    same = _equal_json(text, expected) if form == "json" else text == expected
    if not same:
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.with_name(f"{golden.name}.got").write_text(text, encoding="utf-8")
    assert same, f"{golden.name} differs:\n{_difference(expected, text)}"


def _equal_json(text: str, expected: str) -> bool:
    return bool(expected) and _equal(json.loads(text), json.loads(expected))


def _equal(found: Any, expected: Any) -> bool:
    """Floats by RELATIVE_TOLERANCE; types, keys and their order, and all else exactly."""
    if type(found) is not type(expected):
        return False
    if isinstance(found, float):
        return math.isclose(found, expected, rel_tol=RELATIVE_TOLERANCE)
    if isinstance(found, dict):
        return list(found) == list(expected) and all(_equal(found[k], expected[k]) for k in found)
    if isinstance(found, list):
        return len(found) == len(expected) and all(map(_equal, found, expected))
    return bool(found == expected)


def _difference(expected: str, text: str) -> str:
    lines = difflib.unified_diff(expected.splitlines(), text.splitlines(), "golden", "got", n=1)
    return "\n".join(lines)
