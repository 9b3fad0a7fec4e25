"""Before anything is timed: what is claimed, what is proved, and what is therefore not timed."""

import json
import sys
from pathlib import Path

import msgspec
import pytest

from cachemark.endpoints.clients import Client, ClientSpec
from cachemark.endpoints.probe import ProbeResult
from cachemark.endpoints.servers import parse_spec
from cachemark.host import process
from cachemark.model import experiment_file
from cachemark.model.audit import Restrictions
from cachemark.model.experiment import Experiment, Load, Workload
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.plan import make_plan
from cachemark.model.server_stats import ServerStats
from cachemark.runs.audit import Audit, Auditor, Fitness, Level, skip_reason
from cachemark.runs.audit.claims import claims
from cachemark.runs.audit.fitness import comparable_stats, stored_bytes, unused_wires
from cachemark.runs.tapes import TapeCache
from tests.builders.small_experiments import read_outcomes, write
from tests.cli.in_process import Inside
from tests.conftest import ROOT
from tests.endpoints.probe.deviant import deviant

TEXT = """
name = "claimed"
question = "?"
clients = ["plain", "other?compression=on", "other?local_cache=off"]
servers = ["embedded:io=events,memory=16m", "memcached:memory=16"]
blocks = 1

[[workloads]]
name = "mixed"
mix = { get = 1, set = 1 }
keys = { count = 100 }
values = { size = "100", compressibility = 1.0 }

[[workloads]]
name = "quiet"
mix = { set_noreply = 1 }
loads = ["own"]

[[loads]]
name = "own"

[[loads]]
name = "binary"
wire = "binary"
"""


def client(text: str, *words: str) -> ClientSpec:
    name, _, tail = text.partition("?")
    pairs = [pair.split("=") for pair in tail.split("&") if pair]
    command = [sys.executable, str(ROOT / "tests" / "bad_workers" / "ignores_options.py"), *words]
    made = Client(id=name, language="", command=command)
    return ClientSpec(text=text, client=made, options=dict(pairs))


def auditor(made: Experiment, *words: str) -> Auditor:
    return Auditor(
        make_plan(made),
        {text: client(text, *words) for text in made.clients},
        {text: parse_spec(text) for text in made.servers},
    )


def claimed(text: str) -> set[tuple[str, str, str, int]]:
    made = experiment_file.parse(text, "test")
    found = claims(
        make_plan(made),
        {name: client(name) for name in made.clients},
        {name: parse_spec(name) for name in made.servers},
    )
    return {(one.factor, one.level, one.subject, len(one.cells)) for one in found}


def test_only_what_is_named_is_claimed() -> None:
    compressed = "other?compression=on, values of 100 bytes, compressible to 0%"
    assert claimed(TEXT) == {
        ("wire", "binary", "plain", 2),
        ("wire", "binary", "other?compression=on", 2),
        ("wire", "binary", "other?local_cache=off", 2),
        ("server threads", "events", "embedded:io=events,memory=16m", 9),
        ("compression", "on", compressed, 4),
        ("compression", "on", compressed.replace("to 0%", "to 100%"), 2),
        ("local cache", "off", "other?local_cache=off", 6),
        ("replies", "set_noreply", "plain", 2),
        ("replies", "set_noreply", "other?compression=on", 2),
        ("replies", "set_noreply", "other?local_cache=off", 2),
    }


def test_a_server_inside_another_claims_its_own() -> None:
    text = TEXT.replace('"memcached:memory=16"', '"cluster:2:embedded:io=blocking", "embedded"')
    threads = {(level, subject) for factor, level, subject, _ in claimed(text) if "thr" in factor}
    assert threads == {
        ("events", "embedded:io=events,memory=16m"),
        ("blocking", "cluster:2:embedded:io=blocking"),
    }


LEVELS = """
name = "levels"
question = "?"
clients = ["c?compression=on&local_cache=on"]
servers = ["memcached:memory=16", "embedded:io=blocking,memory=16m"]
blocks = 1

[[workloads]]
name = "w"
mix = { get = 1 }
values = { size = "100", compressibility = 1.0 }

[[loads]]
name = "binary"
wire = "binary"
"""


def looked(tmp_path: Path, *words: str, text: str = LEVELS) -> dict[str, Level]:
    made = experiment_file.parse(text, "test")
    tapes = TapeCache(process.binary_path(), tmp_path)
    heard: list[str] = []
    audit = auditor(made, *words).run(tapes, heard.append)
    assert len(heard) == len(made.servers) + len(audit.levels)
    return {level.factor: level for level in audit.levels}


def test_levels_that_are_what_they_say(tmp_path: Path) -> None:
    answers = {name: level.answer for name, level in looked(tmp_path, "honest").items()}
    assert answers == dict.fromkeys(
        ("wire", "server threads", "compression", "local cache"), "proved"
    )


def test_levels_that_are_not(tmp_path: Path) -> None:
    found = looked(tmp_path)
    assert found.pop("server threads").answer == "proved"
    assert {level.answer for level in found.values()} == {"void"}
    assert "0x67" in found["wire"].evidence
    assert (
        found["local cache"].evidence
        == "40 keys were read, and 40 of these reads reached the server"
    )


def test_what_cannot_be_played_is_unknown(tmp_path: Path) -> None:
    text = LEVELS.replace("memcached:memory=16", "memcached:binary=/nowhere/memcached")
    made = experiment_file.parse(text.replace(', "embedded:io=blocking,memory=16m"', ""), "test")
    look = auditor(made, "honest")
    audit = look.run(TapeCache(process.binary_path(), tmp_path), lambda _: None)
    assert "/nowhere/memcached" in audit.servers[0].unseen
    assert {level.answer for level in audit.levels} == {"unknown"}
    cell = Cell(client=made.clients[0], server=made.servers[0], workload="w", load="binary")
    assert look.restrictions(audit, cell) == Restrictions()


def test_a_void_level_is_an_objection_to_its_cells_alone() -> None:
    made = experiment_file.parse(LEVELS, "test")
    level = Level(
        factor="server threads",
        level="blocking",
        subject=made.servers[1],
        answer="void",
        evidence="it has one thread",
    )
    look = auditor(made)
    audit = Audit(levels=[level])
    voids = [
        look.restrictions(
            audit, Cell(client=made.clients[0], server=server, workload="w", load="binary")
        ).void
        for server in made.servers
    ]
    assert voids[0] == ""
    assert voids[1].startswith("void: server threads blocking of embedded:io=blocking")
    assert (
        skip_reason(Restrictions(void=voids[1]), made.workloads[0], made.loads[0], "") == voids[1]
    )


@pytest.mark.parametrize(
    ("unfit", "mix", "depth", "wire", "named"),
    [
        ("touch", {"get": 1}, 1, "", False),
        ("touch", {"get": 1, "touch": 1}, 1, "", True),
        ("binary", {"get": 1}, 1, "", False),
        ("binary", {"get": 1}, 1, "text", False),
        ("binary", {"get": 1}, 1, "binary", True),
        ("everything", {"get": 1}, 1, "", True),
        ("pipeline", {"get": 1}, 1, "", False),
        ("pipeline", {"get": 1}, 2, "", True),
        ("pipeline", {"set_noreply": 1}, 1, "", True),
        ("evictions", {"get": 1}, 1, "", False),
        ("set", {"get": 1}, 1, "", True),
    ],
)
def test_what_a_server_is_unfit_for_is_not_timed(
    unfit: str, mix: dict[str, float], depth: int, wire: str, named: bool
) -> None:
    restrictions = Restrictions(excluded={unfit: "it cannot"})
    why = skip_reason(restrictions, Workload(name="w", mix=mix), Load(name="l", depth=depth), wire)
    assert why == ("it cannot" if named else "")


def test_a_sequence_is_made_of_operations_too() -> None:
    workload = Workload(name="w", sequence=["set@0", "gat@0"])
    restrictions = Restrictions(excluded={"gat": "it cannot"})
    assert skip_reason(restrictions, workload, Load(name="l"), "") == "it cannot"


NONE = ServerStats()


def evicted(items: int) -> ServerStats:
    return ServerStats({"evictions": str(items)})


def test_what_evicts_wrongly_does_not_count_once_it_has_evicted() -> None:
    restrictions = Restrictions(excluded={"evictions": "it evicts the newest"})
    assert comparable_stats(restrictions, NONE, evicted(0)).reason == ""
    reason = comparable_stats(restrictions, NONE, evicted(7)).reason
    assert "7 items; it evicts the newest" in reason
    assert comparable_stats(Restrictions(), NONE, evicted(7)).reason == ""


def test_counters_that_are_wrong_are_not_held_against_a_trial() -> None:
    restrictions = Restrictions(excluded={"conservation": "miscounts"})
    stats = comparable_stats(restrictions, evicted(1), evicted(2))
    assert (stats.before, stats.after, stats.reason) == ({}, {}, "")
    assert stats.notes == ["the counts were not compared with the server's: miscounts"]


def test_counters_that_are_right_beside_a_wrong_one_are_compared() -> None:
    restrictions = Restrictions(excluded={"conservation": "miscounts"}, true_counters=["cmd_set"])
    readings = [ServerStats({"cmd_set": sets, "delete_hits": sets}) for sets in ("1", "4")]
    stats = comparable_stats(restrictions, *readings)
    assert (dict(stats.before), dict(stats.after)) == ({"cmd_set": "1"}, {"cmd_set": "4"})
    assert stats.partial
    assert "but for cmd_set: miscounts" in stats.notes[0]


def test_only_what_is_done_needs_a_look() -> None:
    made = experiment_file.parse(TEXT, "test")
    assert unused_wires(made) == set()
    text_only = msgspec.structs.replace(made, clients=["native"], loads=made.loads[:1])
    assert unused_wires(text_only) == {"binary"}
    assert stored_bytes(made) == 10_000 * (20 + 100 + 100)


RUN = """
name = "unfit"
question = "?"
clients = ["native"]
servers = ["{server}"]
blocks = 1
workloads = [
    {{ name = "gets", mix = {{ get = 1 }}, keys = {{ count = 10 }} }},
    {{ name = "gats", mix = {{ gat = 1 }}, keys = {{ count = 10 }} }},
]
loads = [{{ name = "one" }}, {{ name = "binary", wire = "binary" }}]

[timing]
warmup_ms = 0
measure_ms = 100
"""


def outcomes(folder: Path) -> dict[tuple[str, str], Outcome]:
    cells = ((outcome.trial.cell, outcome) for outcome in read_outcomes(folder))
    return {(cell.workload, cell.load): outcome for cell, outcome in cells}


def test_a_run_leaves_out_what_its_server_is_unfit_for(inside: Inside, tmp_path: Path) -> None:
    with deviant("no_gat") as address:
        (tmp_path / "e.toml").write_text(RUN.format(server=f"remote:{address}"))
        ended = inside("run", "e.toml", "--details")
    found = outcomes(tmp_path)
    assert found["gets", "one"].verdict == "VALID", found["gets", "one"].reasons
    assert found["gats", "one"].state == "unsupported"
    assert found["gats", "one"].reason == (
        f"remote:{address} is unfit for gat: gat: gat: answered ERROR\\r\\n"
    )
    assert found["gats", "one"].server is None
    assert "is unfit for binary" in found["gets", "binary"].reason
    assert "Do the servers behave like memcached?" in ended.stdout
    (kept,) = tmp_path.glob("results/*/audit.json")
    (fitness,) = msgspec.json.decode(kept.read_bytes(), type=Audit).servers
    assert "gat" in [finding.name for finding in fitness.findings]


FILL = """
name = "fill"
question = "?"
clients = ["native"]
servers = ["remote:{address}"]
blocks = 1
loads = [{{ name = "one" }}]

[[workloads]]
name = "sets"
mix = {{ set_noreply = 1 }}
keys = {{ count = 10 }}
prefill = 0.0
ops = 8000

[timing]
warmup_ms = 0
timeout_ms = 60_000
silence_ms = 60_000
"""


@pytest.mark.parametrize(("ways", "verdict"), [((), "VALID"), (("hangs_up",), "INVALID")])
def test_sets_that_were_lost_with_their_connection_cost_the_verdict(
    ways: tuple[str, ...], verdict: str, inside: Inside, tmp_path: Path
) -> None:
    """On a server whose counters are not all as memcached's, such as emcache."""
    with deviant("counts_sets_as_deletes", *ways) as address:
        (tmp_path / "e.toml").write_text(FILL.format(address=address))
        inside("run", "e.toml")
    outcome = outcomes(tmp_path)["sets", "one"]
    assert outcome.verdict == verdict, outcome.reasons
    assert "but for cmd_set, cmd_get" in " ".join(outcome.notes)
    if ways:
        assert "the server's cmd_set rose by" in outcome.reasons[0]


def test_a_run_that_goes_on_is_not_looked_at_again(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text(RUN.format(server="embedded:memory=16m"))
    inside("run", "e.toml")
    (folder,) = tmp_path.glob("results/*")
    finding = ProbeResult(name="made up", fit=False, seen="this", excludes=["get"])
    audit = Audit(servers=[Fitness(server="embedded:memory=16m", checks=1, findings=[finding])])
    (folder / "audit.json").write_bytes(msgspec.json.encode(audit))
    (folder / "outcomes.jsonl").write_bytes(b"")
    inside("run", "--resume")
    assert outcomes(tmp_path)["gets", "one"].reason == (
        "embedded:memory=16m is unfit for get: made up: this"
    )
    ended = inside("report", "--format", "json")
    titles = [section["title"] for section in json.loads(ended.stdout)["sections"]]
    assert titles.count("Do the servers behave like memcached?") == 1


def test_a_server_without_stats_is_unverified_and_says_so_once(
    inside: Inside, tmp_path: Path
) -> None:
    with deviant("no_stats") as address:
        name = write(tmp_path, servers=json.dumps([f"remote:{address}"]))
        probed = inside("probe", f"remote:{address}")
        ended = inside("run", name)
    assert probed.returncode == 0, probed.stdout
    assert ended.returncode == 0, ended.stderr
    said = " ".join(ended.stdout.split())
    assert said.count("did not confirm all counts of the clients") == 1
    assert "counters: the server does not know `stats`" in said
    found = read_outcomes(tmp_path)
    assert {(outcome.state, outcome.verdict) for outcome in found} == {("measured", "VALID")}
    assert all("were not compared" in " ".join(outcome.notes) for outcome in found)
