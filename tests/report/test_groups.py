"""A report ranks clients on a server, or servers where only one client meets several."""

from collections.abc import Sequence
from typing import Literal

import msgspec
import pytest

from cachemark.report import html
from cachemark.report.answers import compare_command
from cachemark.report.answers import render as answers
from cachemark.report.build import build
from cachemark.report.conclusions import one_sentence
from cachemark.report.model import Report
from cachemark.report.plots import plot_files, summary_png
from cachemark.report.tables import ranking_table
from tests.builders.outcomes import at, experiment, header, measured, numbered

RATES = {"memcached:binary=old": 2000, "memcached:binary=new": 3000, "embedded": 2500}


def report(
    *clients: str,
    rank: Literal["clients", "servers"] = "clients",
    declared: Sequence[str] | None = None,
) -> Report:
    """Each client on every server; the second one does half as much.

    `declared`: the clients in the order of the experiment, if they were played in another one.
    """
    named = experiment(list(declared or clients))
    planned = msgspec.structs.replace(named, servers=list(RATES), rank=rank)
    outcomes = [
        at(measured(client, block, rate // (1 + number)), server=server)
        for block in range(5)
        for number, client in enumerate(clients)
        for server, rate in RATES.items()
    ]
    return build(header(planned), numbered(outcomes))


@pytest.mark.parametrize("client", ["a", "native"])
def test_the_servers_of_the_only_client_are_ranked(client: str) -> None:
    made = report(client)
    (group,) = made.groups
    assert (group.kind, group.common) == ("servers", client)
    assert [row.name for row in group.rows] == [
        "memcached:binary=new", "embedded", "memcached:binary=old",
    ]  # fmt: skip
    assert group.lead is not None
    named = [group.name_of(cell) for cell in (group.lead.first, group.lead.second)]
    assert named == ["memcached:binary=new", "embedded"]
    assert group.lead.ratio is not None
    assert group.lead.ratio.value == pytest.approx(3000 / 2500, rel=0.05)
    assert not any(row.yardstick for row in group.rows)
    assert "memcached:binary=new has the highest rate" in one_sentence(made)


def test_the_answer_and_the_pictures_compare_servers() -> None:
    made = report("a")
    text = answers(made, 140)
    assert "server " in text
    assert "× embedded, the second" in " ".join(text.split())
    assert "--server memcached:binary=new --server embedded" in text
    assert "memcached:binary=new first" in html.render(made, None)
    names = [name for name, _ in plot_files(made, "svg")]
    assert any(name.startswith("ranking") for name in names)
    assert summary_png(made, one_sentence(made)).startswith(b"\x89PNG")


def test_the_experiment_can_rank_the_servers_of_each_client() -> None:
    made = report("a", "b", rank="servers")
    assert [(group.kind, group.common) for group in made.groups] == [
        ("servers", "a"), ("servers", "b"),
    ]  # fmt: skip
    assert one_sentence(made).startswith("memcached:binary=new is first in both comparisons")
    drawn = report("b", "a", rank="servers", declared=["a", "b"])
    assert [group.common for group in drawn.groups] == ["a", "b"]


def test_several_clients_of_each_server_are_ranked() -> None:
    made = report("a", "b")
    assert [(group.kind, group.common) for group in made.groups] == [
        ("clients", server) for server in RATES
    ]
    assert all([row.name for row in group.rows] == ["a", "b"] for group in made.groups)
    assert compare_command(made) == "cachemark compare made --client a --client b"


@pytest.mark.parametrize(
    ("clients", "says"),
    [
        (("native", "python/a"), "python/a and native, the first two, are equal in rate"),
        (("a",), "only a has a valid figure, with "),
    ],
)
def test_a_library_beside_native_is_not_the_only_valid_one(
    clients: tuple[str, ...], says: str
) -> None:
    outcomes = [
        measured(client, block, 1000 + number, index=2 * block + number)
        for block in range(5)
        for number, client in enumerate(clients)
    ]
    made = build(header(experiment(list(clients))), outcomes)
    assert says in one_sentence(made)


def test_a_hit_ratio_is_shown_where_a_read_missed() -> None:
    def ranked(hits: int, misses: int) -> tuple[list[str], list[str]]:
        made = measured("a", 0, 1000)
        assert made.measure is not None
        gets = msgspec.structs.replace(made.measure.operations["get"], hits=hits, misses=misses)
        operations = {"get": gets}
        window = msgspec.structs.replace(made.measure, operations=operations)
        outcome = msgspec.structs.replace(made, measure=window)
        (group,) = build(header(experiment(["a"])), [outcome]).groups
        table = ranking_table(group)
        return table.titles, table.rows[0]

    columns, _ = ranked(4, 0)
    assert "hit ratio" not in columns
    columns, row = ranked(3, 1)
    assert row[columns.index("hit ratio")] == "75.0 %"


def test_a_run_without_valid_trials_names_remedies_without_comparison() -> None:
    noisy = [
        msgspec.structs.replace(
            measured(client, block, 1000), verdict="INVALID", reasons=["steal: 7.0 %"]
        )
        for client in ("a", "b")
        for block in range(3)
    ]
    made = build(header(experiment(["a", "b"], 3)), noisy)
    assert compare_command(made) == ""
    text = " ".join(answers(made, 100).split())
    assert "0 of 6 trials are valid. Where noise is the reason" in text
    assert "--set noise=note keeps the trials" in text
    assert "longer windows (--duration)" in text
    assert text.count("steal: 7.0 %") == 1


def test_groups_beyond_a_screen_are_one_command_away() -> None:
    """A finished run cannot be played again only to see them."""
    named = experiment(["a", "b"])
    planned = msgspec.structs.replace(named, servers=[f"command:s{n} {{port}}" for n in range(7)])
    outcomes = [
        at(measured(client, block, 1000), server=server)
        for block in range(2)
        for client in planned.clients
        for server in planned.servers
    ]
    text = answers(build(header(planned), numbered(outcomes)), 80, "/a run")
    assert "… and 1 more. All groups:\n  cachemark report '/a run'\n" in text
