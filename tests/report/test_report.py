"""Reports: golden files of each form, and sentences about clients that lead or are missing."""

from pathlib import Path

import msgspec
import pytest

from cachemark.model.outcome import Outcome, Withheld
from cachemark.report.build import build
from cachemark.report.conclusions import headline
from cachemark.report.formats import RENDERERS
from tests.builders.outcomes import at, experiment, header, measured, missing
from tests.golden import assert_golden

GOLDEN = Path(__file__).parent / "golden"
# The page has tests of its own: its drawings are vl-convert's affair.
FORMS = [form for form in RENDERERS if form != "html"]


def outcomes() -> list[Outcome]:
    """Two clients that ran, one that is missing, one trial that lied."""
    made = [measured("python/fast", block, 2000, index=4 * block) for block in range(5)]
    made += [measured("python/slow", block, 1500, index=4 * block + 1) for block in range(5)]
    made += [measured("native", block, 5000, index=4 * block + 2) for block in range(5)]
    liar = msgspec.structs.replace(made[5], verdict="INVALID", reasons=["it lied"])
    gone = missing(measured("python/gone", 0, 100, index=3))
    return [*made[:5], liar, *made[6:], gone]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("width", [80, 120])
def test_the_report_is_as_it_was(form: str, width: int) -> None:
    made = experiment(["python/fast", "python/slow", "native", "python/gone"])
    text = RENDERERS[form](build(header(made), outcomes()), width)
    assert_golden(form, text, GOLDEN / f"{form}-{width}.txt")


def test_no_line_is_wider_than_the_terminal() -> None:
    made = experiment(["python/fast", "python/slow", "native"])
    for width in (60, 80, 120):
        text = RENDERERS["table"](build(header(made), outcomes()), width)
        assert max(map(len, text.splitlines())) <= width


def test_the_answer_names_the_first_and_the_second() -> None:
    made = experiment(["python/fast", "python/slow", "native"])
    (answer,) = build(header(made), outcomes()).answers
    assert "python/fast" in answer
    assert "python/slow" in answer
    assert "native" not in answer


def test_every_form_says_why_a_percentile_is_missing() -> None:
    made = experiment(["native"])
    few = [measured("native", block, 20, index=block) for block in range(5)]
    for form in FORMS:
        text = " ".join(RENDERERS[form](build(header(made), few), 120).split())
        assert ("p99 needs 368 op" if form == "csv" else "p99 needs at least 368 op") in text, form
    many = [measured("native", block, 2000, index=block) for block in range(5)]
    gone = [Withheld(percent=99.0, kind="", rule="late", ns=9, moved_ns=2, limit_ns=1)]
    withheld = [msgspec.structs.replace(one, withheld=gone) for one in many]
    assert "p99 withheld\n" in RENDERERS["csv"](build(header(made), withheld), 120)


def test_a_trial_with_similar_reasons_is_one_trial() -> None:
    """Reasons that differ in their figures are one line, which counts trials and not reasons."""
    trials = [measured("native", block, 5000, index=block) for block in range(4)]
    late = ["server 1: late by 2.5 ms", "server 2: late by 3 ms"]
    spoiled = msgspec.structs.replace(trials[0], verdict="INVALID", reasons=late)
    other = msgspec.structs.replace(trials[1], verdict="INVALID", reasons=late[:1])
    report = build(header(experiment(["native"])), [spoiled, other, *trials[2:]])
    (line,) = report.rejected
    assert "2 of 4 trials INVALID: server 1: late by 2.5 ms (and similar)" in line


def test_notes_that_differ_in_their_figures_are_one_line() -> None:
    def noted(client: str, block: int) -> Outcome:
        notes = [f"{900 + block} operations waited"]
        return msgspec.structs.replace(measured(client, block, 5000, index=block), notes=notes)

    trials = [noted(client, block) for client in ("native", "go/slow") for block in range(3)]
    notes = build(header(experiment(["native", "go/slow"])), trials).notes
    found = [note for note in notes if "waited" in note]
    assert found == ["native, go/slow: 900 operations waited (and similar)"]


def test_the_line_of_a_failed_trial_has_its_remedy() -> None:
    trials = [measured("native", block, 5000, index=block) for block in range(3)]
    reset = msgspec.structs.replace(
        missing(trials[0]), state="failed", reason="connection reset", remedy="add tls=yes"
    )
    report = build(header(experiment(["native"])), [reset, *trials[1:]])
    (line,) = report.rejected
    assert line.endswith("1 of 3 trials failed: connection reset → add tls=yes")


def test_a_client_without_a_rival_is_first_in_no_comparison() -> None:
    """Such as the only cache in the process: it shares no group with the clients of a server."""
    played = [
        at(measured(client, block, rate, index=block), server=server, load=load)
        for block in range(5)
        for client, rate, server in (
            ("python/fast", 2000, "embedded"),
            ("python/slow", 1500, "embedded"),
            ("python/cachetools", 9000, "none"),
        )
        for load in ("one", "two")
    ]
    made = experiment(["python/fast", "python/slow"])
    made = msgspec.structs.replace(
        made,
        in_process=["python/cachetools"],
        loads=[*made.loads, msgspec.structs.replace(made.loads[0], name="two")],
    )
    report = build(header(made), played)
    assert len(report.groups) == 4
    assert headline(report).startswith("python/fast is first in both comparisons")


def test_a_server_that_is_missing_is_named_once() -> None:
    gone = [
        msgspec.structs.replace(
            measured(client, 0, 100),
            state="unsupported",
            verdict=None,
            measure=None,
            reason="memcached is not on this machine",
            remedy="apt-get install memcached",
        )
        for client in ("a", "b", "c")
    ]
    (absence,) = build(header(experiment(["a", "b", "c"])), gone).absences
    assert absence.what == "embedded"
    assert absence.remedy == "apt-get install memcached"
