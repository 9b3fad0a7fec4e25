"""The tables of docs/resilience.md are those that the code declares."""

from __future__ import annotations

from cachemark.analysis.resilience.verdict import CRASH, RULES
from cachemark.model.faults import all_faults
from cachemark.report.resilience.document import with_tables
from tests.conftest import ROOT


def test_the_page_has_the_tables_of_today() -> None:
    page = (ROOT / "docs" / "resilience.md").read_text(encoding="utf-8")
    assert page == with_tables(page)


def test_tables_have_a_row_for_each_fault_and_rule() -> None:
    marks = "<!-- printed: {} -->\nstale\n<!-- end -->\n"
    faults, rules = (
        with_tables(marks.format(name)).splitlines()[3:-1] for name in ("faults", "rules")
    )
    assert [row.split("`")[1] for row in faults] == list(all_faults())
    assert [row.split("|")[1].strip() for row in rules] == [rule.name for rule in (CRASH, *RULES)]
