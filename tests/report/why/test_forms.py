"""The forms of `cachemark why` have the same sentences, and a column for each client."""

import re
import tomllib
from importlib import resources

import msgspec

from cachemark.analysis.why.report import WhyReport, differences
from cachemark.model.counts import CountedWork, Counts, UnitCosts
from cachemark.report.why import RENDERERS
from cachemark.report.why.document import first_sentences

SENTENCE = (
    "b makes 2 more calls of poll, select or epoll (3 against 1 of a). Remedy: read from a "
    "socket that blocks, with the time-outs of the kernel (SO_RCVTIMEO)."
)


def repeated(*polls: float, sends: float = 1.0) -> list[Counts]:
    return [Counts(polls=each, sends=sends, timers=0.0, gap_us=12.34) for each in polls]


def report() -> WhyReport:
    counted = [
        CountedWork(client="a", version="1.0", kind="get", repetitions=repeated(1, 1, 1)),
        CountedWork(client="b", version="2|0", kind="get", repetitions=repeated(3, 3, 3)),
        CountedWork(client="c", kind="get", failure="c has no get"),
    ]
    return WhyReport(
        work="200 keys",
        server="the embedded server",
        repeat=3,
        counted=counted,
        differences=differences(counted),
        missing=["System calls are not counted: strace is not installed."],
    )


def test_terminal_has_sentences_and_a_column_for_each_counted_client() -> None:
    text = RENDERERS["table"](report(), None)
    assert SENTENCE in " ".join(text.split())
    assert "c was not counted: c has no get." in text
    assert "strace is not installed." in text
    rows = {line[:20].strip(): line.split()[-2:] for line in text.splitlines()}
    assert rows["for one operation"] == ["a", "b"]
    assert rows["system calls: poll,"] == ["1", "3"]
    assert rows["server: from first t"[:20]][-1] == "µs"
    # Neither client sets timers.
    assert "timers" not in text


def test_markdown_is_a_table_with_the_same_sentences() -> None:
    text = RENDERERS["markdown"](report(), None)
    assert f"- {SENTENCE}" in text.replace("\\", "")
    assert "| system calls: poll, select, epoll | 1 | 3 |" in text
    assert "c was not counted: c has no get." in text


def test_json_has_all_repetitions() -> None:
    again = msgspec.json.decode(RENDERERS["json"](report(), None), type=WhyReport)
    assert again == report()


def test_a_count_that_varies_has_its_error() -> None:
    counted = [
        CountedWork(client="a", kind="get", repetitions=repeated(1, 2, 3)),
        CountedWork(client="b", kind="get", repetitions=repeated(1, 1, 1)),
    ]
    whole = msgspec.structs.replace(report(), counted=counted, differences=differences(counted))
    text = RENDERERS["table"](whole, None)
    assert "2 ±5.73" in text
    assert "b and a: the counts show no difference that a rule names." in text


def test_a_count_says_what_other_causes_bring() -> None:
    one, other = Counts(turns=1.0, sends=1.0), Counts(turns=2.0, sends=5.0)
    counted = [
        CountedWork(client=name, kind="get", repetitions=[each] * 3)
        for name, each in (("a", one), ("b", other))
    ]
    whole = msgspec.structs.replace(report(), counted=counted, differences=differences(counted))
    text = " ".join(RENDERERS["table"](whole, None).split())
    assert "b waits 1 more time for a reply (2 against 1 of a). " in text
    assert "b makes 3 more writes to the socket (5 against 1 of a, 1 by other causes). " in text


def timed(client: str, polls: float, own_us: float, kernel_us: float) -> CountedWork:
    counts = Counts(polls=polls, user_us=own_us, system_us=kernel_us)
    return CountedWork(client=client, kind="get", repetitions=[counts] * 3)


def test_less_time_in_the_kernel_is_said() -> None:
    counted = [timed("a", 1, 10, 5), timed("b", 1, 14, 4)]
    whole = msgspec.structs.replace(report(), counted=counted, differences=differences(counted))
    text = " ".join(RENDERERS["table"](whole, None).split())
    time = "b takes 3 µs more CPU time than a: 4 µs more in its own code, and less in the kernel."
    assert time in text


def test_the_time_between_two_clients_comes_before_its_causes() -> None:
    counted = [timed("a", 1, 10, 5), timed("b", 3, 12, 8)]
    units = [UnitCosts(polls=0.5)] * 3
    whole = msgspec.structs.replace(
        report(), counted=counted, differences=differences(counted, units), unit_costs=units
    )
    text = " ".join(RENDERERS["table"](whole, None).split())
    time = (
        "b takes 5 µs more CPU time than a: 2 µs of them in its own code, 1 µs by the calls below, "
        "2 µs unexplained."
    )
    assert time in text
    assert "(3 against 1 of a, 1 µs in the kernel)" in text.partition(time)[2]


def answer(*counted: CountedWork, player: str = "") -> str:
    units = [UnitCosts(polls=0.5, sends=2.0)] * 3
    whole = msgspec.structs.replace(
        report(),
        counted=list(counted),
        differences=differences(counted, units, of_servers=bool(player)),
        unit_costs=units,
        missing=[],
        player=player,
    )
    return " ".join(RENDERERS["table"](whole, None).split())


def test_less_own_time_is_taken_from_the_kernels() -> None:
    text = answer(timed("a", 1, 12, 5), timed("b", 3, 10, 9))
    parts = "1 µs by the calls below, 3 µs unexplained, but 2 µs less in its own code."
    assert f"b takes 2 µs more CPU time than a: {parts}" in text
    text = answer(timed("a", 1, 12, 5), timed("b", 21, 10, 9))
    parts = "all of it in the kernel, but 2 µs less in its own code. That is less than the calls"
    assert f"b takes 2 µs more CPU time than a: {parts}" in text


def test_calls_that_the_slower_client_saves_count_against_it() -> None:
    text = answer(timed("a", 5, 10, 5), timed("b", 1, 12, 8))
    parts = "2 µs of them in its own code, -2 µs by the calls below, 5 µs unexplained."
    assert f"b takes 5 µs more CPU time than a: {parts}" in text


def test_a_part_within_its_error_has_an_upper_end_only() -> None:
    base = [Counts(user_us=10, system_us=5)] * 3
    noisy = [Counts(user_us=10 + own_us, system_us=15 - own_us) for own_us in (-0.1, 0, 0.2)]
    text = answer(
        CountedWork(client="a", kind="get", repetitions=base),
        CountedWork(client="b", kind="get", repetitions=noisy),
    )
    said = text.partition("b takes 10 µs more CPU time than a: ")[2].partition(".  ")[0]
    assert re.match(r"at most \d(\.\d+)? µs of them in its own code, 1?\d(\.\d)? ±", said), text


def test_the_causes_of_the_slower_client_are_first() -> None:
    slower = msgspec.structs.replace(timed("a", 3, 12, 8).repetitions[0], sends=0.0)
    faster = msgspec.structs.replace(timed("b", 1, 10, 5).repetitions[0], sends=1.0)
    pair = (
        CountedWork(client="a", kind="get", repetitions=[slower] * 3),
        CountedWork(client="b", kind="get", repetitions=[faster] * 3),
    )
    text = answer(*pair)
    first, second = text.index("a makes 2 more calls of poll"), text.index("b makes 1 more write ")
    assert text.index("a takes 5 µs more CPU time than b") < first < second
    whole = msgspec.structs.replace(report(), counted=list(pair), differences=differences(pair))
    (said,) = first_sentences(whole)
    assert "a makes 2 more calls of poll" in said
    assert "b makes" not in said


def test_time_that_is_not_known_to_differ_is_said() -> None:
    text = answer(timed("a", 1, 10, 5), timed("b", 3, 10, 5))
    assert "b and a: their CPU time is not known to differ. b makes 2 more calls" in text


def test_a_cost_below_its_error_is_not_said() -> None:
    counted = [timed("a", 1, 10, 5), timed("b", 3, 10, 5)]
    units = [UnitCosts(polls=cost) for cost in (0.1, 0.5, 2.4)]
    found = differences(counted, units)
    assert found[0].findings[0].cost_us
    whole = msgspec.structs.replace(report(), counted=counted, differences=found, unit_costs=units)
    text = " ".join(RENDERERS["table"](whole, None).split())
    assert "b makes 2 more calls of poll, select or epoll (3 against 1 of a). " in text


def test_times_below_a_microsecond_are_shown() -> None:
    rows = [Counts(user_us=us) for us in (0.02, 0.03, 0.04)]
    counted = [CountedWork(client="a", kind="get", repetitions=rows)]
    whole = msgspec.structs.replace(report(), counted=counted, differences=[])
    text = RENDERERS["markdown"](whole, None)
    assert "| CPU time in its own code | 0.03 ±0.06 µs |" in text


def test_servers_get_no_remedies_for_clients() -> None:
    text = answer(timed("a", 1, 10, 5), timed("b", 3, 10, 5), player="native")
    assert "b makes 2 more calls of poll, select or epoll (3 against 1 of a, 1 µs" in text
    assert "Remedy" not in text


def test_every_dash_has_a_reason_in_the_head() -> None:
    counted = [
        CountedWork(client=name, kind="get", repetitions=[each] * 3)
        for name, each in (
            ("a", Counts(switches=1.0, allocations=2.0, polls=1.0, bytes_in=5.0, faults=1.0)),
            ("b", Counts()),
        )
    ]
    whole = msgspec.structs.replace(report(), counted=counted, differences=[])
    text = " ".join(RENDERERS["table"](whole, None).split())
    for reason in (
        "waits of b: a thread ended before its last ones were read.",
        "memory of b: the runtime does not tell all of it.",
        "system calls of b: strace did not run.",
        "traffic of b: no server saw it.",
        "page faults of b: too few readings in a play.",
    ):
        assert f"Not counted (–): {reason}" in text
    shown = msgspec.structs.replace(whole, counted=counted[:1])
    assert "Not counted" not in RENDERERS["table"](shown, None)


def test_every_figure_can_be_absent_for_a_reason() -> None:
    listed = resources.files("cachemark.report.why").joinpath("figures.toml").read_text("utf-8")
    figures = tomllib.loads(listed)
    absent = [figure for group in figures["absent"].values() for figure in group]
    assert sorted(absent) == sorted(figures["titles"])
