"""The findings about clients cite counts that stand in the table of counts."""

import csv

from tests.conftest import ROOT

DATA = ROOT / "docs" / "data"


def _rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(newline="", encoding="utf-8") as table:
        return list(csv.DictReader(table))


def test_each_finding_cites_counts_of_the_table() -> None:
    counted = {(row["client"], row["kind"]): row for row in _rows("why-2026-11.csv")}
    findings = _rows("why-findings-2026-11.csv")
    assert len({(row["place"], row["symptom"]) for row in findings}) >= 10
    for row in findings:
        found = counted[row["client"], row["kind"]]
        assert row["version"] == found["version"]
        for cited in row["counts"].split("; "):
            figure, value = cited.split()
            digits = len(value.partition(".")[2])
            # A time depends on the machine's load.
            assert not figure.endswith("_us")
            assert abs(float(found[figure]) - float(value)) <= 0.51 * 10**-digits, row
        assert ": " in row["place"]
        assert row["source"].startswith("https://")
        assert row["proposal"]
