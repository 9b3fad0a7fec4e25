"""The ratchets on file and function sizes: what is too large is named, and limits only go down."""

from pathlib import Path

import pytest

from tools import ratchets
from tools.ratchets import Largest

FIGURES = {"python": {"file_lines": Largest(400, "src/long.py")}}
LIMITS = {
    "python": {"test_name_words": 10, "file_lines": 2, "function_lines": 1, "complexity": 1},
    "rust": {"test_name_words": 10, "file_lines": 6},
}


def test_a_file_above_the_limit_is_named() -> None:
    (line,) = ratchets.complaints(FIGURES, {"python": {"file_lines": 399}})
    assert line.startswith("src/long.py: file_lines 400 is above 399")


def test_a_limit_above_the_largest_is_to_be_lowered() -> None:
    (line,) = ratchets.complaints(FIGURES, {"python": {"file_lines": 401}})
    assert "make ratchets" in line
    assert ratchets.complaints(FIGURES, {"python": {"file_lines": 400}}) == []


def test_lowering_never_raises_a_limit() -> None:
    text = ratchets.lowered(FIGURES, {"python": {"file_lines": 300}})
    assert "file_lines = 300" in text


def test_lines_of_the_house_may_stay_below_their_limit() -> None:
    room = ratchets.ROOM["lines"]
    figures = {"house": {"lines": Largest(50_000, "src")}}
    assert ratchets.complaints(figures, {"house": {"lines": 50_000 + room}}) == []
    (line,) = ratchets.complaints(figures, {"house": {"lines": 50_001 + room}})
    assert "make ratchets" in line
    (line,) = ratchets.complaints(figures, {"house": {"lines": 49_999}})
    assert "src: lines 50000 is above 49999" in line
    assert f"lines = {50_000 + room}" in ratchets.lowered(figures, {"house": {"lines": 60_000}})


def test_a_language_without_limits_is_refused() -> None:
    (line,) = ratchets.complaints(FIGURES, {})
    assert "no limit" in line


def test_the_largest_of_each_kind_is_found() -> None:
    path = ratchets.ROOT / "tools" / "ratchets.py"
    figures = ratchets.measure([path])["python"]
    assert figures["file_lines"].value == path.read_text("utf-8").count("\n")
    assert "tools/ratchets.py" in figures["complexity"].where


def test_a_tests_name_counts_its_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ratchets, "ROOT", tmp_path)
    sources = {
        "one.py": "def test_one() -> None: ...\n    async def test_one_two_three() -> None: ...\n",
        "two.rs": "#[test]\nfn one() {}\n#[test]\n#[cfg(unix)]\nfn one_two() {}\nfn a_b_c() {}\n",
    }
    for name, text in sources.items():
        (tmp_path / name).write_text(text)
    figures = ratchets.measure(tmp_path / name for name in sources)
    assert figures["python"]["test_name_words"] == Largest(3, "one.py: one_two_three")
    assert figures["rust"]["test_name_words"] == Largest(2, "two.rs: one_two")
    assert ratchets.complaints(figures, LIMITS) == []
    eleven = {"python": {"test_name_words": Largest(11, "one.py: one")}}
    (line,) = ratchets.complaints(eleven, LIMITS)
    assert "test_name_words 11 is above 10" in line


def test_the_house_is_counted_as_a_whole() -> None:
    figures = ratchets.measure_house()
    assert figures["modules"].value == len(list((ratchets.ROOT / "src").rglob("*.py")))
    lines = sum(len(p.read_bytes().splitlines()) for p in (ratchets.ROOT / "src").rglob("*.py"))
    assert figures["lines"].value == lines
    package = ratchets.ROOT / "src" / figures["fan_out"].where.replace(".", "/")
    widest = package / "__init__.py" if package.is_dir() else package.with_suffix(".py")
    # A line may import several modules, and a module from a package.
    assert figures["fan_out"].value > 10
    assert widest.read_text("utf-8").count("cachemark") > 10
