"""A report on libraries with their own default settings."""

import msgspec
import pytest

from cachemark.model.outcome import Outcome
from cachemark.report.answers import render as answers
from cachemark.report.build import build
from cachemark.report.default_settings import TITLE
from cachemark.report.formats import RENDERERS
from cachemark.report.model import Report, Section
from tests.builders import rounds
from tests.builders.outcomes import LOAD, WORKLOAD, experiment, header, measured, numbered

OWN = "ruby/dalli@defaults"
WORDS = {"ruby/dalli": "values are compressed"}
LINE = f"Own settings of {OWN}: values are compressed."


def stored(of: Outcome, bytes_: int) -> Outcome:
    """The same trial of a server that holds ten items."""
    return msgspec.structs.replace(of, stats_after={"bytes": str(bytes_), "curr_items": "10"})


def in_trials(rates: dict[str, int], bytes_: dict[str, int] | None = None) -> Report:
    """Five blocks, one trial after the other."""
    outcomes = [
        measured(client, block, rate) for block in range(5) for client, rate in rates.items()
    ]
    if bytes_:
        outcomes = [stored(of, bytes_[of.trial.cell.client]) for of in outcomes]
    return build(header(experiment(list(rates))), numbered(outcomes), own_settings=WORDS)


def in_turns(rates: dict[str, float], sittings: int) -> Report:
    workload = msgspec.structs.replace(WORKLOAD, name="get")
    planned = msgspec.structs.replace(
        experiment(list(rates)), workloads=[workload], loads=[LOAD], design="rounds"
    )
    outcomes = numbered(rounds.run(rates, sittings))
    return build(header(planned), outcomes, own_settings=WORDS)


def tables(report: Report) -> list[Section]:
    return [section for section in report.sections if section.topic == "defaults"]


def cells(report: Report) -> dict[str, str]:
    """The only row of the only table, by column."""
    (table,) = tables(report)
    (row,) = table.rows
    return dict(zip(table.columns, row, strict=True))


def test_a_run_without_defaults_has_no_table() -> None:
    assert not tables(in_trials({"ruby/dalli": 2000, "native": 3000}))


def test_the_row_has_ratio_cpu_and_stored_bytes_of_both() -> None:
    row = cells(in_trials({"ruby/dalli": 2000, OWN: 1000}, {"ruby/dalli": 1000, OWN: 400}))
    assert row["client"] == OWN
    assert float(row["of common"].split()[0]) == pytest.approx(0.5, rel=0.05)
    assert row["over"] == "5 blocks"
    assert row["client CPU/op"] != row["common CPU/op"]
    assert row["bytes/item"] == "40.0 B"
    assert row["common bytes/item"] == "100 B"


def test_a_server_without_statistics_has_no_column_of_bytes() -> None:
    assert "bytes/item" not in cells(in_trials({"ruby/dalli": 2000, OWN: 1000}))


def test_options_are_those_of_both() -> None:
    both = {"ruby/dalli?hashing=default": 2000, f"{OWN}?hashing=default": 1000}
    report = in_trials(both)
    assert cells(report)["over"] == "5 blocks"
    assert any("Options of a client" in note for note in tables(report)[0].notes)


def test_alone_it_has_words_and_no_ratio() -> None:
    report = in_trials({OWN: 1000, "native": 3000})
    assert "over" not in cells(report)
    assert tables(report)[0].notes == [LINE]


def test_another_version_has_no_words() -> None:
    # They are true of the version that is set up.
    report = in_trials({"ruby/dalli@2.7": 2000, "ruby/dalli@2.7@defaults": 1000})
    assert cells(report)["over"] == "5 blocks"
    assert "values are compressed" not in answers(report, 140)


def test_in_turns_the_ratio_is_that_of_sittings() -> None:
    rates = {"ruby/dalli": 20000.0, OWN: 10000.0}
    many, few = cells(in_turns(rates, 8)), cells(in_turns(rates, 1))
    assert many["over"] == "8 sittings"
    assert few["over"].startswith("within")
    assert float(many["of common"].split()[0]) == pytest.approx(0.5, rel=0.05)


def test_every_form_has_the_words() -> None:
    report = in_trials({"ruby/dalli": 2000, OWN: 1000}, {"ruby/dalli": 1000, OWN: 400})
    for text in (RENDERERS[form](report, None) for form in ("table", "markdown", "html")):
        assert TITLE in text
        assert LINE in text
    line = f"{LINE} It stored 40.0 B for each item; 100 B with the common settings."
    assert line in " ".join(answers(report, 140).split())
