"""A crate without unit tests or examples in its docs has no test program for them."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.conftest import ROOT

LIBRARIES = sorted((ROOT / "engine" / "crates").glob("*/src/lib.rs"))
# A fenced part of a comment; the first line may name its language.
_FENCED = re.compile(r"^ *//[/!] ```(\S*)\n(?: *//[/!].*\n)*? *//[/!] ```$", re.M)
_UNIT_TEST = re.compile(r"cfg\(test\)|#\[test\]")


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda path: path.parts[-3])
def test_cargo_builds_test_programs_only_for_tests(library: Path) -> None:
    manifest = tomllib.loads((library.parents[1] / "Cargo.toml").read_text(encoding="utf-8"))
    sources = [path.read_text(encoding="utf-8") for path in library.parent.rglob("*.rs")]
    built = manifest.get("lib", {})
    has_tests = any(_UNIT_TEST.search(text) for text in sources)
    has_examples = any(
        found[1] in ("", "rust") for text in sources for found in _FENCED.finditer(text)
    )
    assert built.get("test", True) == has_tests, "[lib] test"
    assert built.get("doctest", True) == has_examples, "[lib] doctest"
