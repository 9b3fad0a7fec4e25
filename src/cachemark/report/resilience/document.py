"""Prints the tables of docs/resilience.md from the declared faults and rules."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from cachemark.analysis.resilience.verdict import CRASH, RULES, Rule
from cachemark.model.faults import Fault, all_faults

_TABLE = re.compile(r"(<!-- printed: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def with_tables(page: str) -> str:
    """A page with the tables of today between its marks."""
    tables = {"faults": _faults(all_faults().values()), "rules": _rules([CRASH, *RULES])}
    return _TABLE.sub(lambda mark: f"{mark[1]}{tables[mark[2]]}{mark[3]}", page)


def _faults(faults: Iterable[Fault]) -> str:
    head = "| fault | what happens | `--quick` |\n|---|---|---|\n"
    rows = (
        f"| `{each.name}` | {each.about} | {'yes' if each.quick else ''} |\n" for each in faults
    )
    return head + "".join(rows)


def _rules(rules: Iterable[Rule]) -> str:
    head = "| rule | verdict | figure | limit |\n|---|---|---|---|\n"
    return head + "".join(_rule(each) for each in rules)


def _rule(rule: Rule) -> str:
    limit = "never came" if rule.limit is None else f"{rule.limit:g}"
    only = ", in the profile `common`" if rule.common_only else ""
    if not rule.figure:
        return f"| {rule.name} | {rule.verdict} | – | once |\n"
    return f"| {rule.name} | {rule.verdict} | `{rule.figure}` | {limit}{only} |\n"


def _main(arguments: list[str]) -> int:
    """Write the tables into the checkout's page, or with --check say whether they are fresh."""
    page = Path(__file__).resolve().parents[4] / "docs" / "resilience.md"
    text = page.read_text(encoding="utf-8")
    if "--check" not in arguments:
        page.write_text(with_tables(text), encoding="utf-8")
        return 0
    if text == with_tables(text):
        return 0
    print("docs/resilience.md is stale: run `make docs`", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
