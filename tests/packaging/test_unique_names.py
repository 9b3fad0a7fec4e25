"""A public type's name says one thing in the whole project."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import ROOT


def public_types(path: Path) -> Iterator[str]:
    """The classes and the aliases of types that a module defines."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.ClassDef(name=name) | ast.Assign(targets=[ast.Name(id=name)]):
                # Constants are in capitals.
                if name[0].isupper() and not name.isupper():
                    yield name


def shared_names(folder: Path) -> dict[str, list[str]]:
    """The names that several modules define, with these modules."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(folder.rglob("*.py")):
        for name in public_types(path):
            found[name].append(path.relative_to(folder).as_posix())
    return {name: places for name, places in found.items() if len(places) > 1}


def test_no_public_type_shares_its_name() -> None:
    assert shared_names(ROOT / "src" / "cachemark") == {}


def test_the_test_can_fail(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("class Row: ...\nSIZE = 1\nclass _Own: ...\n")
    (tmp_path / "b.py").write_text("Row = dict[str, int]\nSIZE = 1\nclass _Own: ...\n")
    assert shared_names(tmp_path) == {"Row": ["a.py", "b.py"]}
