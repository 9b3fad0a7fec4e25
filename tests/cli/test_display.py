"""A run that is played prints the time that is left, and each problem once."""

import io
from collections.abc import Sequence

import msgspec
import pytest
from rich.console import Console

from cachemark.cli.display import RemainingTime, make_display
from cachemark.model import suites
from cachemark.model.outcome import Finding, Outcome
from cachemark.model.plan import make_plan
from tests.builders.outcomes import measured
from tests.cli.in_process import Inside


def late(client: str, block: int, figure: int) -> Outcome:
    text = f"the client sent too late: it can have moved p99 by {figure} ms"
    found = Finding(rule="send-lag", weight="INVALID", text=text, figure=figure)
    made = measured(client, block, 1000, index=block)
    return msgspec.structs.replace(made, verdict="INVALID", findings=[found], reasons=[text])


def printed(outcomes: list[Outcome], replays: int = 0) -> list[str]:
    out = io.StringIO()
    with make_display(Console(file=out, width=200), lambda _: "", lambda _: []) as display:
        for number, outcome in enumerate(outcomes, 1):
            is_replay = number > len(outcomes) - replays
            display.begins(outcome.trial, number, len(outcomes), is_replay=is_replay)
            display.ends(outcome)
    return out.getvalue().splitlines()


def test_after_the_last_trial_no_time_is_left() -> None:
    clock = RemainingTime()
    clock.begins(1, 2)
    assert not clock.left()
    clock.ends()
    assert clock.left().endswith(" left")
    clock.begins(2, 2)
    assert clock.left().endswith(" left")
    clock.ends()
    assert not clock.left()


def test_no_more_time_is_left_than_the_limit_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("cachemark.cli.display.time.monotonic", lambda: now[0])
    free, limited = RemainingTime(), RemainingTime(70)
    for clock in (free, limited):
        clock.begins(1, 12)
    now[0] += 15
    for clock in (free, limited):
        clock.ends()
    assert (free.left(), limited.left()) == ("2:45 left", "0:55 left")
    now[0] += 100
    assert limited.left() == "0:00 left"


def test_the_time_left_covers_the_trials_left() -> None:
    """Trials of other cells take other times: a trial's place in the run says nothing."""
    asked: list[int] = []

    def left_of(plan: object, ended: Sequence[Outcome]) -> float | None:
        assert plan is the_plan
        asked.append(len(ended))
        return 449.0 if ended else None

    the_plan = make_plan(suites.find("quick"))
    clock = RemainingTime(None, left_of)
    clock.planned(the_plan)
    clock.begins(1, 4)
    assert not clock.left()
    clock.ends(measured("a", 0, 1000))
    assert clock.left() == "7:29 left"
    clock.begins(2, 4)
    assert clock.left() == "7:29 left"
    assert asked == [1, 1]


def test_problems_that_differ_in_figures_are_printed_once_with_count() -> None:
    lines = printed([late("a", block, 3 + block) for block in range(4)])
    assert len(lines) == 2
    assert lines[0].startswith("trial 1 of 4: a")
    assert "moved p99 by 3 ms" in lines[0]
    assert lines[1].startswith("4 trials of 1 cell: INVALID: the client sent too late")


def test_a_replay_is_told_from_a_trial() -> None:
    lines = printed([measured("a", 0, 1000), measured("a", 0, 1000, index=1)], replays=1)
    assert lines[0].startswith("trial 1 of 2: a")
    assert lines[1].startswith("replay, trial 2 of 2: a")
    assert not lines[1].endswith("left)")


def test_a_part_that_takes_long_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    out, now = io.StringIO(), [100.0]
    monkeypatch.setattr("cachemark.cli.display.time.monotonic", lambda: now[0])
    with make_display(Console(file=out, width=200), lambda _: "", lambda _: []) as display:
        display.begins(measured("a", 0, 1000).trial, 1, 1)
        for second in range(1, 30):
            now[0] += 1
            display.ops(1000 * second)
    assert out.getvalue().splitlines() == [
        "trial 1 of 1: 10,000 operations of this phase",
        "trial 1 of 1: 20,000 operations of this phase",
    ]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_line_of_a_trial_keeps_its_figures_and_units(width: int) -> None:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None)
    client = "python/pymemcache?a_long_option=with_a_long_value#again"
    with make_display(console, lambda _: "", lambda _: []) as display:
        for number in (1, 2, 3):
            outcome = measured(client, number, 6286, index=number)
            display.begins(outcome.trial, number, 3)
            display.ends(outcome)
    shown = [line for line in out.getvalue().splitlines() if "3 of 3" in line]
    assert "ops/s" in shown[-1]
    assert " left" in shown[-1]


def test_a_plan_is_one_line_however_narrow_a_terminal_is(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The web pages show the last line as the plan. On a busy machine it is longer."""
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr("os.getloadavg", lambda: (100.0, 100.0, 100.0))
    last = inside("run", "quick", "--client", "native", "--dry-run").stderr.splitlines()[-1]
    assert last.startswith("quick: ")
    assert "load average 100" in last
