"""Which cells share a set and a sitting: properties that hold for every grid."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from cachemark.model.experiment import Experiment, Load, Workload
from cachemark.model.outcome import Cell
from cachemark.model.plan import make_plan, trial_count
from cachemark.model.sitting_plan import MAX_SET, MAX_SITTING, references_of, sittings_of


def grid(clients: int, servers: int, loads: int) -> list[Cell]:
    return [
        Cell(client=f"c{client}", server=f"s{server}", workload="w", load=f"l{load}")
        for load in range(loads)
        for server in range(servers)
        for client in range(clients)
    ]


@given(st.integers(1, 50), st.integers(1, 12), st.integers(1, 3))
def test_every_cell_is_played_within_limits_of_sets_and_sittings(
    clients: int, servers: int, loads: int
) -> None:
    cells = grid(clients, servers, loads)
    sittings = sittings_of(cells, "c0")
    played = [cell for sets in sittings for part in sets for cell in part]
    assert set(map(str, played)) == set(map(str, cells))
    for sets in sittings:
        arms = [str(cell) for part in sets for cell in part]
        assert len(arms) == len(set(arms)) <= MAX_SITTING
        assert all(1 <= len(part) <= MAX_SET for part in sets)
        assert len({cell.load for part in sets for cell in part}) == 1


@given(st.integers(3, 30), st.integers(1, 3))
def test_clients_of_one_server_share_a_set_or_the_reference(clients: int, servers: int) -> None:
    sittings = sittings_of(grid(clients, servers, 1), "c1")
    sets = [{(c.client, c.server) for c in part} for sitting in sittings for part in sitting]
    for server in range(servers):
        here = [part for part in sets if any(s == f"s{server}" for _, s in part)]
        for first, second in combinations(range(clients), 2):
            pair = {(f"c{first}", f"s{server}"), (f"c{second}", f"s{server}")}
            together = any(pair <= part for part in here)
            assert together or all(("c1", f"s{server}") in part for part in here)


@given(st.integers(9, 60), st.integers(1, 2))
def test_the_sets_of_a_server_share_two_references(clients: int, servers: int) -> None:
    sittings = sittings_of(grid(clients, servers, 1), "c1")
    sets = [frozenset(part) for sitting in sittings for part in map(_names, sitting)]
    for first, second in combinations(sets, 2):
        of_one_server = {server for _, server in first} == {server for _, server in second}
        assert len(first & second) == (2 if of_one_server else 0)


def _names(part: list[Cell]) -> list[tuple[str, str]]:
    return [(cell.client, cell.server) for cell in part]


def test_the_second_reference_is_a_client_that_starts_quickly() -> None:
    names = ["java/x", "python/x", "go/x", "c/x", "ruby/x"]
    cells = [Cell(client=name, server="s", workload="w", load="l") for name in names]
    assert [cell.client for cell in references_of(cells, "java/x")] == ["java/x", "c/x"]
    assert [cell.client for cell in references_of(cells, "c/x")] == ["c/x", "go/x"]
    assert [cell.client for cell in references_of(cells[:1], "c/x")] == ["java/x"]


def test_two_servers_with_seven_clients_make_two_sets() -> None:
    (sitting,) = sittings_of(grid(7, 2, 1), "c0")
    assert [len(part) for part in sitting] == [7, 7]
    assert [{cell.server for cell in part} for part in sitting] == [{"s0"}, {"s1"}]


def test_many_servers_with_one_client_are_compared_through_the_first() -> None:
    sittings = sittings_of(grid(1, 12, 1), "c0")
    sets = [[cell.server for cell in part] for sitting in sittings for part in sitting]
    assert all(part[0] == "s0" for part in sets)
    assert {server for part in sets for server in part} == {f"s{number}" for number in range(12)}


def test_two_settings_of_a_client_share_a_set() -> None:
    names = [f"c{number}{tail}" for number in range(12) for tail in ("", "@defaults")]
    cells = [Cell(client=name, server="s", workload="w", load="l") for name in names]
    sets = [{c.client for c in part} for sitting in sittings_of(cells, "c3") for part in sitting]
    for number in range(12):
        assert any({f"c{number}", f"c{number}@defaults"} <= part for part in sets) or number == 3


def test_the_count_of_trials_has_the_references_of_each_set() -> None:
    """A run of more than eight clients could be exported, and its archive was refused."""
    clients = [f"c{number}" for number in range(11)]
    experiment = Experiment(
        name="many",
        question="which?",
        workloads=[Workload(name="w", mix={"get": 1})],
        clients=clients,
        servers=["memcached"],
        loads=[Load(name="l")],
        design="rounds",
        blocks=3,
    )
    assert trial_count(experiment) == len(make_plan(experiment).trials) == 3 * (11 + 2)
