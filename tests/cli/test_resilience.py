"""`cachemark resilience` as it is typed: bad input, a cell that is played, a run that goes on."""

import json
from pathlib import Path

import pytest

from cachemark.endpoints.clients import registry
from cachemark.host import process
from cachemark.model.faults import all_faults, chosen_faults
from tests.cli.in_process import Inside
from tests.conftest import Cli

CLIENT = registry(process.binary_path())["python/pymemcache"]


def test_bad_input_names_what_there_is(inside: Inside) -> None:
    for arguments, said in [
        (["native", "--faults", "frozen-1"], "did you mean 'frozen-1s'?"),
        (["native", "--faults", "frozen-1h"], "no fault 'frozen-1h'"),
        (["native", "--faults", "frozen", "--for", "11m"], "write 1ms to 10m"),
        (["native", "--faults", "frozen", "--for", "long"], "is no time"),
        (["native", "--faults", "melted", "--for", "1s"], "no fault 'melted'"),
        (["native", "--faults", "reset", "--for", "5s"], "has no duration"),
        (["native", "--faults", "frozen"], "such as --for 30s"),
        (["native", "--for", "5s"], "--for 5s: no fault is named"),
        (["native", "--faults", "frozen", "--for", "5"], "--for: '5' is no time"),
        (["native", "--faults", "frozen", "--for", "11m"], "fault 'frozen' for 11m"),
        (["native", "--sittings", "0"], "at least one sitting"),
        (["native", "--sittings", "1000000000"], "at most 100,000 cells"),
        (["--resume", "x" * 5000], "resilience"),
        (["python/nobody"], "no client 'python/nobody'"),
        (["--resume", "nowhere"], "no run of `resilience` 'nowhere'"),
        (["native", "--resume", "latest"], "leave the other options out"),
        (["native@defaults"], "use --profile"),
        (["native", "--jobs", "0"], "--jobs 0: 1 to "),
        (["native", "--jobs", "9999"], "each CPU can play 8"),
    ]:
        ended = inside("resilience", *arguments)
        assert ended.returncode == 2, ended
        assert said in ended.stderr
    assert not Path("results").exists(), "a run was made although the input was bad"


def test_a_dry_run_says_what_would_be_played(inside: Inside) -> None:
    ended = inside("resilience", "native", "--faults", "frozen-10s", "--sittings", "2", "--dry-run")
    assert ended.returncode == 0, ended
    assert "6 cells of 1 client, one at a time: 2 min if all" in ended.stdout
    named = inside("resilience", "--client", "native", "--faults", "frozen-10s", "--dry-run")
    one = (
        "--profile",
        "common",
        "--sittings",
        "1",
        "--fault",
        "frozen",
        "--for",
        "3s",
        "--dry-run",
    )
    assert "one at a time: 13 s if all clients" in inside("resilience", "native", *one).stdout
    assert "of 1 client" in named.stdout
    both = inside("resilience", "native", "--quick", "--jobs", "2", "--dry-run")
    assert "24 cells of 1 client, 2 at a time" in both.stdout
    assert not Path("results").exists(), "nothing was played"


def test_the_faults_are_whole() -> None:
    for fault in all_faults().values():
        assert fault.about[0].islower(), "it follows a colon in reports"
        assert fault.before_ms >= 1000, "a client in a JIT-compiled language has to warm up"
    assert [f.name for f in chosen_faults(["restarted", "frozen-1s"], quick=False)] == [
        "frozen-1s",
        "restarted",
    ]
    assert 0 < len(chosen_faults([], quick=True)) < len(all_faults())


@pytest.mark.parametrize("family", ["frozen", "frozen-1s", "frozen-10s"])
def test_a_fault_lasts_as_long_as_asked(family: str) -> None:
    (fault,) = chosen_faults([family], quick=False, lasting="30s")
    assert (fault.name, fault.during_ms) == ("frozen-30s", 30_000)
    assert fault.about == "the server does nothing for 30 s (SIGSTOP)"
    assert chosen_faults([fault.name], quick=False) == [fault], "as a stored run names it"
    assert fault.after_ms == all_faults()["frozen-1s"].after_ms


def test_all_faults_but_instants_can_last_longer() -> None:
    names = [fault.name for fault in all_faults().values() if fault.name != "reset"]
    faults = chosen_faults(names, quick=False, lasting="1.5s")
    assert {fault.during_ms for fault in faults} == {1500}
    assert all("1.5 s" in fault.about for fault in faults)
    assert [fault.name for fault in faults if "latency" in fault.name] == ["latency-50ms-1.5s"]


def test_a_client_that_cannot_be_played_says_why(cli: Cli) -> None:
    ended = cli("resilience", "native/store", "--faults", "frozen-1s", "--sittings", "1", "--json")
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert [one["name"]["profile"] for one in found] == ["common", "defaults", "tuned"]
    assert all("no server" in one["unsupported"] for one in found)


@pytest.mark.skipif(bool(CLIENT.missing()), reason=CLIENT.setup)
@pytest.mark.slow("plays three faults, of ten seconds each")
def test_faults_are_played_and_judged(cli: Cli, tmp_path: Path) -> None:
    """No value is wrong however slow the machine is, and what was played is not repeated."""
    names = ["frozen-100ms", "restarted", "close-in-value"]
    options = [word for name in names for word in ("--faults", name)]
    options += ["--profile", "common", "--sittings", "1"]
    ended = cli("resilience", "python/pymemcache", *options)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (header,) = tmp_path.glob("results/*/resilience.json")
    lines = (header.parent / "cells.jsonl").read_bytes().splitlines()
    found = {cell["name"]["fault"]: cell for cell in map(json.loads, lines)}
    assert list(found) == names
    for cell in found.values():
        assert cell["figures"]["wrong"] == cell["figures"]["stale"] == 0, cell["findings"]
        assert cell["figures"]["calls"] > 1000
        assert sum(sum(each.values()) for each in cell["timeline"]) == cell["figures"]["calls"]
    down = found["restarted"]["figures"]
    assert down["during"].get("connection", 0) > 0, down
    assert down["connections"] > 0, down

    (header.parent / "cells.jsonl").write_bytes(b"\n".join(lines) + b'\n{"torn')
    again = cli("resilience", "--resume", "latest")
    assert again.returncode == 0, again.stderr
    assert "python/pymemcache" in again.stdout
    assert (header.parent / "cells.jsonl").read_bytes().splitlines()[:3] == lines
