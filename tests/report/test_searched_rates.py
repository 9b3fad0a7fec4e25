"""The result of a search, in words and in tables."""

import csv
import io
import math
from collections.abc import Callable

import msgspec
import pytest

from cachemark.analysis.rate_search import bounds, has_ended, searches
from cachemark.model.experiment import Experiment, Load
from cachemark.model.hosts import CoordinatorPlace, Host, Hosts, Role
from cachemark.model.outcome import Outcome
from cachemark.model.run_header import HostsOfRun
from cachemark.model.search_steps import wider_load
from cachemark.report import answers
from cachemark.report.build import build
from cachemark.report.conclusions import one_sentence
from cachemark.report.formats import RENDERERS
from cachemark.report.model import Report
from tests.builders.outcomes import header, numbered
from tests.builders.search_outcomes import LOAD, at_rate, closed, search_experiment

FAST, SLOW = 400_000, 2_000_000


def report(*outcomes: Outcome, blocks: int = 1) -> Report:
    return build(header(search_experiment(blocks=blocks)), numbered(outcomes))


def test_the_answer_names_rate_time_and_what_came_above() -> None:
    text = one_sentence(report(closed("a", 2000), at_rate("a", 1000, FAST),
                               at_rate("a", 1500, SLOW), at_rate("a", 1250, SLOW),
                               at_rate("a", 1120, SLOW), at_rate("a", 1060, SLOW),
                               at_rate("a", 1000, FAST)))  # fmt: skip
    assert "a meets p99<1ms up to 1.00 k (725–1.50 k) operations per second (p99 400 µs)" in text
    assert text.endswith("at 1.06 k: p99 2.00 ms.")


def test_a_late_client_is_named_as_the_limit() -> None:
    late = [at_rate("a", 1000, SLOW, late_ns=1_900_000)] * 2
    (text,) = report(closed("a", 2000), *late, *[at_rate("a", 500, FAST)] * 2,
                     *[at_rate("a", 750, SLOW, late_ns=1_900_000)] * 2).answers  # fmt: skip
    assert "up to 500 operations" in text
    assert "at 750: limited by this generator, not by the server. More callers (--threads)" in text


def limited(client: str, load: Load = LOAD) -> list[Outcome]:
    """A search that found 500 a second, as its client was too late at 750."""
    late = [at_rate(client, rate, SLOW, late_ns=1_900_000, load=load) for rate in (1000, 750)]
    met = at_rate(client, 500, FAST, load=load)
    return [closed(client, 2000, load=load), late[0], late[0], met, met, late[1], late[1]]


def test_a_search_with_more_threads_follows_the_limited_one() -> None:
    wide = wider_load(LOAD, 4)
    rates = (2000, 3000, 3500, 3750, 3880, 3880)
    more = [at_rate("a", rate, FAST, load=wide) for rate in rates]
    made = report(*limited("a"), closed("a", 4000, load=wide), *more)
    capacity, one, four = made.answers
    assert "holds 3.88 k operations per second with p99<1ms at 4 connections" in capacity
    assert one.startswith("mixed, open, against embedded: a meets p99<1ms up to 500")
    assert one.endswith("not by the server; the search went on with 4 threads.")
    assert four.startswith("mixed, open-4-threads, against embedded: a meets p99<1ms up to 3.88 k")
    found = [line for line in csv_lines(made) if line["row"] == "found"]
    assert [(line["load"], line["rate_per_s"]) for line in found] == [
        ("open", "500"), ("open-4-threads", "3880"),
    ]  # fmt: skip
    assert found[0]["reason"].endswith("the search went on with 4 threads")


def test_when_no_more_threads_are_left_the_remedy_names_none() -> None:
    *_, one, four = report(*limited("a"), *limited("a", wider_load(LOAD, 4))).answers
    assert "--set placement.worker" not in one
    assert "No number of threads is left to try: more CPUs" in four
    assert "--threads)" not in four


def test_where_no_rate_meets_the_objective_the_sentence_says_so() -> None:
    slow = [at_rate("a", rate, SLOW) for rate in (1000, 500)]
    (text,) = report(closed("a", 2000), *slow).answers
    assert "a: no rate meets p99<1ms; at 500: p99 2.00 ms." in text


def test_a_late_client_is_blamed_instead_of_the_server() -> None:
    late = [at_rate("a", rate, SLOW, late_ns=1_900_000) for rate in (1000, 1000, 500, 500)]
    (text,) = report(closed("a", 2000), *late).answers
    assert "a: no rate was shown to meet p99<1ms; at 500: limited by this generator" in text


def test_if_every_rate_met_it_the_closed_loop_bounds() -> None:
    rates = (1000, 1500, 1750, 1880, 1940, 1940)
    (text,) = report(closed("a", 2000), *[at_rate("a", rate, FAST) for rate in rates]).answers
    assert "up to 1.94 k" in text
    assert "a closed loop of the same callers does 2.00 k, so more callers may do more" in text


def slow_from(limit: float) -> Callable[[float], Outcome]:
    return lambda rate: at_rate("a", rate, SLOW if rate >= limit else FAST)


def disturbed(rate: float) -> Outcome:
    return at_rate("a", rate, FAST, verdict="INVALID", rule="steal")


def late(rate: float) -> Outcome:
    return at_rate("a", rate, SLOW, late_ns=1_900_000)


def whole_search(step: Callable[[float], Outcome], planned: Experiment) -> list[Outcome]:
    """The outcomes of a search that has ended."""
    played = [closed("a", 2000)]
    while not has_ended(search := searches(numbered(played), planned)[0]):
        rate = bounds(search).next_rate
        assert rate
        played.append(step(rate))
    return played


@pytest.mark.parametrize(
    ("step", "more"),
    [
        (slow_from(1100), None),
        (slow_from(0), None),
        (slow_from(math.inf), None),
        (late, None),
        (disturbed, " --blocks 2"),
    ],
)
def test_an_open_search_prints_what_plays_it_on(
    step: Callable[[float], Outcome], more: str | None
) -> None:
    planned = msgspec.structs.replace(search_experiment(), clients=["a"])
    outcomes = whole_search(step, planned)
    for played, options in ((outcomes, more), (outcomes[:3], "")):
        text = answers.render(build(header(planned), numbered(played)), 200)
        command = f"Play on, as questions are open:\n  cachemark run --resume made{options}\n"
        assert ("Play on" in text) == (options is not None)
        assert options is None or command in text


def test_several_searches_give_a_median_and_a_range() -> None:
    outcomes = [
        outcome
        for block, best in enumerate((1000, 1500, 1250))
        for outcome in (
            closed("a", 2000, block),
            at_rate("a", 1000, FAST, block),
            at_rate("a", 1500, FAST if best == 1500 else SLOW, block),
            *([at_rate("a", 1250, FAST if best == 1250 else SLOW, block)] if best < 1500 else []),
        )
    ]
    (text,) = report(*outcomes, blocks=3).answers
    assert "up to 1.25 k (1.00 k–1.50 k in 3 searches) operations per second" in text


@pytest.mark.parametrize("form", [RENDERERS[form] for form in ("answers", "table", "markdown")])
def test_each_form_has_a_row_for_each_client(form: Callable[[Report, int], str]) -> None:
    made = report(closed("a", 2000), at_rate("a", 1000, FAST), closed("b", 4000),
                  at_rate("b", 2000, SLOW), at_rate("b", 1000, FAST))  # fmt: skip
    text = form(made, 200)
    assert "The highest rates with p99<1ms" in text or form is answers.render
    assert "highest rate" in text
    assert "p99 2.00 ms" in text
    assert text.index("a ") < text.index("b ")


def test_without_a_closed_loop_the_figure_is_a_reason() -> None:
    broken = msgspec.structs.replace(closed("a", 2000), state="failed", reason="it died")
    (text,) = report(broken, broken).answers
    assert text.endswith("nothing was found, as its closed loop was not judged, failed: it died.")


def test_the_hosts_of_a_search_are_shown() -> None:
    begun = header(search_experiment())
    rows: list[tuple[str, Role]] = [("s", "server"), ("a", "client"), ("b", "client")]
    plan = Hosts(
        coordinator=CoordinatorPlace(address="127.0.0.1", port=0),
        hosts=[Host(name=name, roles=[role], address="127.0.0.1") for name, role in rows],
    )
    hosts = HostsOfRun(plan=plan, facts={name: begun.host for name, _ in rows})
    over = build(msgspec.structs.replace(begun, hosts=hosts), numbered([closed("a", 2000)]))
    (section,) = [section for section in over.sections if section.topic == "hosts"]
    assert [row[0] for row in section.rows] == ["s", "a", "b"]
    assert any("rates belong to all 2 hosts of clients" in note for note in section.notes)


def csv_lines(made: Report) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(RENDERERS["csv"](made, None))))


def test_the_csv_has_found_rate_interval_and_every_trial() -> None:
    lines = csv_lines(report(closed("a", 2000), at_rate("a", 1000, FAST),
                             at_rate("a", 1500, SLOW), at_rate("a", 1250, SLOW),
                             at_rate("a", 1120, SLOW), at_rate("a", 1060, SLOW),
                             at_rate("a", 1000, FAST)))  # fmt: skip
    found, search, *trials = lines
    assert {line["schema_version"] for line in lines} == {"1"}
    assert (found["client"], found["row"], found["verdict"]) == ("a", "found", "found")
    low, rate, high = (float(found[f"rate_per_s{end}"]) for end in ("_low", "", "_high"))
    assert rate == 1000
    assert 700 < low < rate < high < 1600
    assert found["percentile_ns"] == trials[1]["percentile_ns"]
    assert 400_000 <= int(found["percentile_ns"]) < 401_000
    assert found["reason"] == "at 1.06 k: p99 2.00 ms"
    assert (search["row"], search["block"], search["rate_per_s"]) == ("search", "1", "1000")
    assert [(t["row"], t["rate_per_s"], t["verdict"]) for t in trials] == [
        ("closed-loop", "", "measured"), ("rate", "1000", "met"), ("rate", "1500", "missed"),
        ("rate", "1250", "missed"), ("rate", "1120", "missed"), ("rate", "1060", "missed"),
        ("rate", "1000", "met"),
    ]  # fmt: skip


def test_the_csv_names_what_made_a_trial_no_answer() -> None:
    late = [at_rate("a", rate, SLOW, late_ns=1_900_000) for rate in (1000, 1000, 500, 500)]
    broken = msgspec.structs.replace(closed("b", 2000), state="failed", reason="it died")
    lines = csv_lines(report(closed("a", 2000), *late, broken, broken))
    found = {line["client"]: line for line in lines if line["row"] == "found"}
    assert [line["verdict"] for line in lines if line["row"] == "rate"] == ["generator"] * 4
    assert (found["a"]["verdict"], found["a"]["rate_per_s"]) == ("none", "")
    assert found["b"]["reason"].endswith("its closed loop was not judged, failed: it died")
    refused = [line for line in lines if (line["client"], line["row"]) == ("b", "closed-loop")]
    assert [(line["ops_per_s"], line["verdict"]) for line in refused] == [("", "failed")] * 2


def test_a_client_that_cannot_play_has_its_reason_in_csv() -> None:
    absent = msgspec.structs.replace(
        closed("b", 2000), state="unsupported", reason="not built", measure=None
    )
    lines = csv_lines(report(closed("a", 2000), at_rate("a", 1000, FAST), absent))
    assert [(line["client"], line["verdict"], line["reason"]) for line in lines[-1:]] == [
        ("b", "unsupported", "not built")
    ]
