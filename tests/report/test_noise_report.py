"""A report on noise, and on a client that was played twice."""

import html
import re

import msgspec
import pytest

from cachemark.analysis.number_format import hidden_by
from cachemark.model.client_name import REPEAT_SUFFIX
from cachemark.model.errors import UsageError
from cachemark.model.experiment_file import parse
from cachemark.model.outcome import Finding, HostNoise, Outcome, Verdict
from cachemark.model.plan import make_plan
from cachemark.report.build import build
from cachemark.report.compare.selection import trials_by_cell
from cachemark.report.formats import RENDERERS
from cachemark.report.html.render import render
from cachemark.report.series import build_exported_run
from cachemark.report.tables import self_comparison
from tests.builders.outcomes import at, experiment, header, measured, missing


def twin(block: int, rate: int) -> Outcome:
    """A trial of the second name."""
    return at(measured("a", block, rate), client=f"a{REPEAT_SUFFIX}")


def test_a_client_played_twice_is_in_blocks_but_not_ranked() -> None:
    made = msgspec.structs.replace(experiment(["a", "b"]), twice="a")
    for block in range(5):
        names = sorted(
            trial.cell.client for trial in make_plan(made).trials if trial.block == block
        )
        assert names == ["a", "a#again", "b"]
    outcomes = [trial for n in range(5) for trial in (measured("a", n, 1000), twin(n, 1000))]
    report = build(header(made), [*outcomes, *(measured("b", n, 1500) for n in range(5))])
    (group,) = report.groups
    assert [row.summary.cell.client for row in group.rows] == ["b", "a"]
    assert not any("A/A" in note for note in report.notes)
    said = self_comparison(group)
    assert re.search(
        r"a, played twice, has 1\.\d+ \(.+–.+\) × its own ops/s; differences below \d\.\d % are",
        said,
    )
    for form in (RENDERERS["markdown"], RENDERERS["table"]):
        assert said[:40] in form(report, 200)
    assert said in html.unescape(render(report, None))


@pytest.mark.parametrize("servers", [["s"], ["s", "t"]])
def test_a_client_that_is_alone_is_compared_with_itself(servers: list[str]) -> None:
    made = msgspec.structs.replace(experiment(["a"]), twice="a", servers=servers)
    outcomes = [
        at(trial, server=server)
        for server in servers
        for n in range(5)
        for trial in (measured("a", n, 1000), twin(n, 1100))
    ]
    report = build(header(made), outcomes)
    for server in servers:
        (line,) = [of for of in report.answers if f"{server}: a played twice" in of]
        assert "1.10 (" in line
        assert line.endswith("are within the instrument's own error on this machine.")
    assert not any("Only a has" in line for line in report.answers)
    if len(servers) == 1:
        assert any("only a has a valid figure" in line for line in report.answers)
        assert "differences below" in self_comparison(report.groups[0])


def test_the_second_name_is_nothing_that_is_missing_or_compared() -> None:
    made = msgspec.structs.replace(experiment(["a", "b"]), twice="a")
    outcomes = [trial for n in range(5) for trial in (measured("a", n, 1000), twin(n, 1000))]
    gone = [missing(each) for each in outcomes]
    assert [absence.what for absence in build(header(made), gone).absences] == ["a"]
    assert {cell.client for cell in trials_by_cell(outcomes)} == {"a"}
    assert {one.cell.client for one in build_exported_run(header(made), outcomes).series} == {"a"}


def test_one_block_has_no_interval_of_it() -> None:
    made = msgspec.structs.replace(experiment(["a", "b"], 1), twice="a")
    outcomes = [measured("a", 0, 1000), twin(0, 1000), measured("b", 0, 1500)]
    (group,) = build(header(made), outcomes).groups
    assert "within 1 block, so no bound" in self_comparison(group)


@pytest.mark.parametrize(("rate", "answer"), [(1200, "open"), (2000, "better")])
def test_a_lead_within_the_instruments_own_error_is_no_answer(rate: int, answer: str) -> None:
    made = msgspec.structs.replace(experiment(["a", "b"]), twice="a")
    outcomes = [
        trial
        for n in range(5)
        for trial in (measured("a", n, 1000), twin(n, 1300), measured("b", n, rate))
    ]
    report = build(header(made), outcomes)
    (group,) = report.groups
    assert group.itself_bound > 1.25
    assert group.lead is not None
    assert (group.lead.first.client, group.lead.answer) == ("b", answer)
    assert "are within the instrument's own error" in self_comparison(group)
    assert hidden_by(1.0321) == "differences below 3.2 %"
    assert hidden_by(3416.5) == "even differences by a factor of 2"


STEAL = "steal, time that the hypervisor gave to others"


def test_noise_is_one_line_for_each_rule() -> None:
    def noisy(block: int, figure: float) -> Outcome:
        text = f"{STEAL}: {figure} %"
        found = Finding(rule="steal", weight="noise", text=text, figure=figure)
        return msgspec.structs.replace(measured("a", block, 1000), findings=[found])

    outcomes = [noisy(0, 3.0), noisy(1, 7.0), measured("a", 2, 1000)]
    report = build(header(experiment(["a"], 3)), outcomes)
    (line,) = [note for note in report.notes if note.startswith("Noise")]
    assert line == f"Noise in 2 of 3 trials; the worst: {STEAL}: 7.0 %."


def test_only_a_client_of_the_experiment_can_be_played_twice() -> None:
    text = (
        'name = "e"\nquestion = "?"\nclients = ["a"]\nservers = ["s"]\ntwice = "b"\n'
        '[[workloads]]\nname = "w"\nmix = { get = 1 }\n[[loads]]\nname = "l"\n'
    )
    with pytest.raises(UsageError, match="is not one of the clients"):
        parse(text, "e.toml")


def test_the_answers_say_that_the_machine_was_loaded() -> None:
    def beside(percent: float, verdict: Verdict = "VALID", search: str = "") -> list[str]:
        noise = HostNoise(cpus=2, foreign_cpu_percent=percent)
        outcomes = [
            msgspec.structs.replace(measured(client, block, 1000), noise=noise, verdict=verdict)
            for client in ("a", "b")
            for block in range(3)
        ]
        plan = msgspec.structs.replace(experiment(["a", "b"], 3), search=search)
        return build(header(plan), outcomes).answers

    (line,) = [of for of in beside(85.0) if "loaded" in of]
    assert "other programs used 85 % of its CPUs" in line
    assert "The ratios hold" in line
    (line,) = [of for of in beside(85.0, search="p99<1ms") if "loaded" in of]
    assert "A rate that a search found is a lower bound" in line
    assert not any("loaded" in of for of in beside(0.5))
    # Without a valid trial there is no ratio that the machine could have moved.
    assert not any("loaded" in of for of in beside(85.0, "INVALID"))


def test_the_answers_name_a_pause_that_moved_a_rate() -> None:
    def paused(ms: float) -> list[str]:
        text = f"the client was stopped for {ms} ms"
        found = Finding(rule="long-pause", weight="noise", text=text, figure=ms, limit=200)
        outcome = msgspec.structs.replace(measured("a", 0, 1000), findings=[found])
        return build(header(experiment(["a"], 1)), [outcome]).answers

    assert paused(4860)[-1] == (
        "Noise in 1 of 1 trials; the worst: the client was stopped for 4860 ms."
    )
    assert not any("stopped" in line for line in paused(190))
