"""How a client distributes its keys over several servers: told for each, as they counted it."""

import json
from pathlib import Path

import msgspec

from cachemark.model.outcome import Outcome
from cachemark.model.server_stats import ServerLoad
from cachemark.report.server_loads import server_load_lines
from tests.builders.outcomes import measured
from tests.builders.small_experiments import read_outcomes
from tests.cli.in_process import Inside

KEYS, OPS = 900, 3000
RUN = (
    *("run", "--client", "native", "--server", "cluster:3:memcached", "--mix", "get=1"),
    *("--keys", str(KEYS), "--ops", str(OPS), "--blocks", "1", "--set", "design=trials"),
    *("--set", "timing.warmup_ms=0", "--set", "noise=note"),
)


def test_a_cluster_has_keys_and_load_by_server(inside: Inside, tmp_path: Path) -> None:
    ended = inside(*RUN)
    assert ended.returncode == 0, ended.stderr
    (outcome,) = read_outcomes(tmp_path)
    loads = outcome.server_loads
    assert len(loads) == 3
    # Each key is on one server, and each get asked one of them.
    assert sum(each.items or 0 for each in loads) == KEYS
    assert sum(each.commands for each in loads) == OPS
    assert min(each.items or 0 for each in loads) > 0
    told = json.loads(inside("report", "--format", "json").stdout)
    (line,) = (note for note in told["notes"] if note.startswith("Each server of"))
    shares = [f"{100 * each.commands / OPS:.1f} %" for each in loads]
    items = [f"{each.items}" for each in loads]
    assert line == (
        f"Each server of cluster:3:memcached, native: {shares[0]}, {shares[1]} and {shares[2]} "
        f"of the commands; {items[0]}, {items[1]} and {items[2]} items."
    )
    for form in ("table", "markdown", "html"):
        said = " ".join(inside("report", "--format", form).stdout.split())
        assert "Each server of cluster:3:memcached, native: " in said, form


def test_one_server_has_no_line(inside: Inside, tmp_path: Path) -> None:
    assert inside(*RUN, "--server", "memcached").returncode == 0
    lines = server_load_lines(read_outcomes(tmp_path))
    assert [line.startswith("Each server of cluster:3:memcached") for line in lines] == [True]


def trial(client: str, block: int, loads: list[ServerLoad], **changes: object) -> Outcome:
    made = measured(client, block, 1000)
    return msgspec.structs.replace(made, server_loads=loads, **changes)


def test_trials_that_do_not_count_are_not_in_it() -> None:
    even = [ServerLoad(commands=50, items=10), ServerLoad(commands=50, items=10)]
    uneven = [ServerLoad(commands=100, items=None), ServerLoad(commands=0, items=20)]
    lines = server_load_lines([trial("a", 0, even), trial("a", 1, uneven, verdict="INVALID")])
    assert lines == [
        "Each server of embedded, a: 50.0 % and 50.0 % of the commands; 10 and 10 items."
    ]
    (line,) = server_load_lines([trial("a", 0, even), trial("a", 1, uneven)])
    assert line == "Each server of embedded, a: 75.0 % and 25.0 % of the commands."
