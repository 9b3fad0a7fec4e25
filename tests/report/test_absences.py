"""Of work that could not be played, the missing thing is named once, and by its own name."""

from cachemark.model.client_name import REPEAT_SUFFIX
from cachemark.model.outcome import Cell
from cachemark.model.plan import Skipped
from cachemark.report.absences import absence_text, find_absences

REASON, REMEDY = "not on this machine", "install it"


def cell(client: str, server: str = "embedded", load: str = "one") -> Cell:
    return Cell(client=client, server=server, workload="get", load=load)


def texts(skipped: dict[Cell, str], grid: list[Cell]) -> list[str]:
    skips = [Skipped(cell=of, reason=reason, remedy=REMEDY) for of, reason in skipped.items()]
    return [absence_text(absence) for absence in find_absences(skips, grid)]


def test_a_server_missing_for_all_clients_is_one_line() -> None:
    grid = [cell(client, server) for client in ("a", "b") for server in ("embedded", "memcached")]
    gone = {of: REASON for of in grid if of.server == "memcached"}
    assert texts(gone, grid) == [f"memcached: {REASON} (2 cells) → {REMEDY}"]


def test_a_server_missing_for_the_only_client_is_named() -> None:
    grid = [cell("a", "embedded"), cell("a", "memcached")]
    assert texts({grid[1]: REASON}, grid) == [f"memcached: {REASON} → {REMEDY}"]


def test_a_reason_that_begins_with_the_server_names_it_once() -> None:
    grid = [cell("a"), cell(f"a{REPEAT_SUFFIX}")]
    gone = dict.fromkeys(grid, f"embedded cannot be measured: {REASON}")
    assert texts(gone, grid) == [f"embedded: cannot be measured: {REASON} → {REMEDY}"]


def test_clients_that_share_a_reason_are_not_their_server() -> None:
    grid = [cell("a"), cell("b")]
    gone = {of: f"{of.client}: {REASON}" for of in grid}
    assert texts(gone, grid) == [f"{name}: {REASON} → {REMEDY}" for name in ("a", "b")]


def test_a_client_is_named_without_its_library_a_second_time() -> None:
    grid = [cell("a@defaults", load=load) for load in ("one", "two")]
    gone = dict.fromkeys(grid, f"a: {REASON}")
    assert texts(gone, grid) == [f"a@defaults: {REASON} (2 cells) → {REMEDY}"]


def test_single_cells_are_named_by_what_they_share() -> None:
    grid = [cell(client, load=load) for client in ("a", "b") for load in ("one", "binary")]
    gone = {of: REASON for of in grid if of.load == "binary" and of.client == "a"}
    assert texts(gone, grid) == [f"a · get · binary: {REASON} → {REMEDY}"]
    both = [*grid, cell("c", load="binary")]
    gone |= {of: REASON for of in grid if of.load == "binary"}
    assert texts(gone, both) == [f"embedded · get · binary · a, b: {REASON} (2 cells) → {REMEDY}"]
