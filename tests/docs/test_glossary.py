"""The glossary of ARCHITECTURE.md."""

import re
from pathlib import Path

_PAGE = Path(__file__).resolve().parents[2] / "ARCHITECTURE.md"


def _terms() -> list[str]:
    section = (
        _PAGE.read_text(encoding="utf-8").partition("\n## Glossary\n")[2].partition("\n## ")[0]
    )
    return re.findall(r"^- \*\*(.+?)\*\*: ", section, re.MULTILINE)


def test_the_glossary_can_be_read_at_once() -> None:
    assert len(_terms()) <= 60


def test_no_term_stands_twice_in_the_glossary() -> None:
    terms = _terms()
    assert terms
    assert sorted({term for term in terms if terms.count(term) > 1}) == []
