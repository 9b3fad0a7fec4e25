"""`cachemark capacity`: the servers that a trace needs, beside real servers, and bad files."""

import importlib
import json
import random
import subprocess
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from cachemark.endpoints.servers import RunningServer, parse_spec, running
from cachemark.host.process import binary_path
from cachemark.model.experiment import Experiment
from cachemark.model.outcome import Outcome
from tests.builders.outcomes import experiment, numbered
from tests.builders.search_outcomes import at_rate, closed, search_experiment
from tests.builders.stored_runs import all_at, kept, made_header, trials
from tests.cli.in_process import Inside
from tests.conftest import ROOT
from tests.engine.test_record import Client

_KEYS, _GETS, _SECONDS = 4000, 60_000, 200
_SMALL = '[[server]]\nname = "small"\nmemory = "4m"\nrate = 150\nthreads = 2\nprice = 0.5\n'


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Gets of 4,000 keys, 300 a second; a quarter of them is of the first 100 keys."""
    drawn = random.Random(7)
    lines = ["time,op,key,size,ttl"]
    for number in range(_GETS):
        key = drawn.randrange(100 if drawn.random() < 0.25 else _KEYS)
        lines.append(f"{number * _SECONDS / _GETS:.4f},get,user:{key:04d},900,")
    path = tmp_path_factory.mktemp("trace") / "day.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def _told(inside: Inside, trace: Path, text: str, *options: str) -> dict[str, Any]:
    Path("fleet.toml").write_text(text)
    told = inside("capacity", str(trace), "--servers", "fleet.toml", "--json", *options)
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout)


def test_each_limit_needs_its_servers(inside: Inside, trace: Path) -> None:
    text = f"hit_ratio = 0.95\ngrowth = 2\nconnections = 9\n{_SMALL}connections = 8\n"
    fleet = _told(inside, trace, text)["fleet"]
    [count] = fleet["counts"]
    assert fleet["demand"]["requests_per_s"] == pytest.approx(600, rel=0.02)
    limits = {each["limit"]: each["servers"] for each in count["limits"]}
    # 600 requests a second at 0.7 of 150 each, and at 150 without one.
    assert 6 <= limits["rate"] <= 9
    assert 5 <= limits["loss"] <= limits["rate"]
    # 4,000 items in chunks of 1,184 B are 4.6 MiB; one of twenty reads may miss.
    assert limits["memory"] == 2
    assert count["needed"] == count["servers"] == max(limits.values())
    assert count["price"] == 0.5 * count["servers"]
    assert count["connections_fit"] is False
    played = fleet["played"]
    assert sum(played["keys_of_server"]) == _KEYS
    assert played["is_memcached"]
    assert 1 - played["before"]["misses"]["value"] > 0.9


def test_the_screen_names_the_deciding_limit(inside: Inside, trace: Path) -> None:
    large = '[[server]]\nname = "large"\nmemory = "64m"\nrate = "2k"\nprice = 9\n'
    Path("fleet.toml").write_text(f"hit_ratio = 0.9\n{_SMALL}{large}")
    shown = inside("capacity", str(trace), "--servers", "fleet.toml")
    assert shown.returncode == 0, shown.stderr
    assert "servers of small (4 MiB) for 300 requests/s; the rate decides" in shown.stdout
    for part in ("The minute after a server is lost", "Assumptions", "20 draws of other keys"):
        assert part in shown.stdout
    # A server more costs less than a large one, which two are needed of.
    assert "2 × large" in shown.stdout


def test_without_any_limit_nothing_is_claimed(inside: Inside, trace: Path) -> None:
    Path("fleet.toml").write_text('[[server]]\nname = "a"\nmemory = "4m"\n')
    shown = inside("capacity", str(trace), "--servers", "fleet.toml")
    assert "no number of these servers is known to be enough" in shown.stdout
    unreachable = _told(inside, trace, f"hit_ratio = 0.998\n{_SMALL}")
    assert unreachable["fleet"]["counts"][0]["needed"] is None
    assert unreachable["fleet"]["played"] is None
    shown = inside("capacity", str(trace), "--servers", "fleet.toml")
    assert "no number of servers reaches hits of 99.8 %: with all keys in memory" in shown.stdout
    assert "leave hit_ratio out or ask for less" in " ".join(shown.stdout.split())
    assert "The fullest and the hottest server" not in shown.stdout


def test_a_trace_of_new_keys_says_so(inside: Inside, trace: Path, tmp_path: Path) -> None:
    (short := tmp_path / "short.csv").write_text(
        "\n".join(["time,op,key,size", *(f"{n / 100},get,{n % 900},300" for n in range(1000)), ""])
    )
    for verb, sizes in (("predict", ["--memory", "8m"]), ("capacity", ["--servers", "fleet.toml"])):
        Path("fleet.toml").write_text(_SMALL)
        told = inside(verb, str(short), *sizes)
        # 700 of the 800 reads that count.
        assert "With any memory, 87.5 % of the reads miss" in told.stdout + told.stderr
        assert "With any memory" not in inside(verb, str(trace), *sizes).stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no [[server]]"),
        ("\x00", "fleet.toml: line 1:"),
        ("[[server]\n", "fleet.toml: line 1:"),
        ('ring = "rendezvous"\n' + _SMALL, "ketama, libmemcached-ketama"),
        ("hit_ratio = 1.5\n" + _SMALL, "above 0, at most 1"),
        ("hit_ratio = nan\n" + _SMALL, "above 0, at most 1"),
        ("use_at_most = 0\n" + _SMALL, "above 0, at most 1"),
        ("growth = -1\n" + _SMALL, "a number above 0"),
        ("growth = inf\n" + _SMALL, "a number above 0"),
        ('peak_rate = "many"\n' + _SMALL, "is no number"),
        ("no_such = 1\n" + _SMALL, "unknown field `no_such`"),
        ('gutter = { servers = 0, ttl = "10s" }\n' + _SMALL, "at least one server"),
        ('gutter = { servers = 1, ttl = "10" }\n' + _SMALL, "say the unit"),
        (_SMALL + 'service = "0s"\n', "a time above 0"),
        (_SMALL + "service_cv2 = -1\n", "at least 0"),
        (_SMALL + "number = 0\n", "1 to 1000 servers"),
        (_SMALL + "number = 1001\n", "1 to 1000 servers"),
        (_SMALL + 'network = "0"\n', "network"),
        (_SMALL.replace('"4m"', "4"), "with its unit"),
        (_SMALL.replace('"4m"', '"4k"'), "at least 1m"),
        (_SMALL.replace("rate = 150", "rate = -5"), "rate = -5"),
        (_SMALL.replace("threads = 2", "threads = 0"), "1 to 1024"),
        (_SMALL * 101, "at most 100"),
        ("addresses = [" + '"a:1",' * 1001 + "]\n" + _SMALL, "at most 1000"),
    ],
)
def test_a_bad_file_is_one_error(inside: Inside, trace: Path, text: str, said: str) -> None:
    Path("fleet.toml").write_text(text)
    told = inside("capacity", str(trace), "--servers", "fleet.toml")
    assert (told.returncode, told.stdout) == (2, "")
    assert said in " ".join(told.stderr.split())
    assert "fleet.toml: " in told.stderr


def test_what_goes_with_no_trace_is_refused(inside: Inside, trace: Path, tmp_path: Path) -> None:
    Path("fleet.toml").write_text(_SMALL)
    for arguments, said in (
        (["no.csv"], "no.csv"),
        (["127.0.0.1:"], "127.0.0.1:: no such file, nor HOST:PORT"),
        ([str(trace), "--duration", "1s"], "running memcached"),
        (["127.0.0.1:1"], "add --duration 60s"),
        (["127.0.0.1:1", "--duration", "1s"], "no connection"),
        ([str(trace), "--warm-up", "1"], "0 to 0.9"),
    ):
        told = inside("capacity", *arguments, "--servers", "fleet.toml")
        assert (told.returncode, said in told.stderr) == (2, True), told.stderr
    told = inside("plan", str(trace))
    assert (told.returncode, "docs/size-a-fleet.md" in told.stderr) == (2, True)
    untimed = tmp_path / "untimed.csv"
    untimed.write_text("op,key,size\nget,a,10\nget,a,10\n")
    told = inside("capacity", str(untimed), "--servers", "fleet.toml")
    assert (told.returncode, "give `peak_rate`" in told.stderr) == (2, True)
    counted = _told(inside, untimed, f"peak_rate = 100\n{_SMALL}")["fleet"]
    assert counted["played"]["loss"] is None


def test_a_running_server_becomes_one_page(inside: Inside, tmp_path: Path) -> None:
    Path("fleet.toml").write_text(_SMALL)
    with running(parse_spec("memcached")) as server:
        address = server.addresses[0]
        command = [binary_path(), "drive", "--server", address, "--keys", "500", "--rate", "500"]
        command += ["--mix", "get=9,set=1", "--duration", "60s", "--json"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as load:
            Client(address).ask("get a", "END")
            told = inside(
                *("capacity", address, "--duration", "2s", "--servers", "fleet.toml"),
                *("--keep", "kept.trace", "--out", "page.html"),
            )
            alone = inside("capacity", address, "--duration", "2s")
            load.kill()
    assert told.returncode == 0, told.stderr
    assert ": 1 server of its size (64 MiB) for " in alone.stdout, alone.stderr
    assert told.stdout.startswith(f"{address}: ")
    page = (tmp_path / "page.html").read_text()
    assert f"<title>{address}: " in page
    for title in ("Servers that are needed", "Reads that miss", "Hottest keys"):
        assert title in page
    assert (tmp_path / "kept.trace").stat().st_size > 0


def test_a_tape_is_a_trace_from_numbers(inside: Inside, tmp_path: Path) -> None:
    write = [binary_path(), "tape", "write", "--out", "t.tape", "--keys", "1000", "--size", "900"]
    write += ["--mix", "fetch=9,set=1", "--rate", "500", "--duration", "40s"]
    subprocess.run(write, check=True, capture_output=True, cwd=tmp_path)
    fleet = _told(inside, tmp_path / "t.tape", _SMALL, "--out", "page.html")["fleet"]
    assert fleet["origin"]["source"] == "tape"
    assert fleet["requests"] == pytest.approx(20_000, rel=0.1)
    assert sum(fleet["played"]["keys_of_server"]) == 1000
    assert fleet["demand"]["requests_per_s"] == pytest.approx(500, rel=0.1)
    # Nine reads of ten, of 1,000 keys that were all asked for before: none misses.
    assert fleet["played"]["before"]["misses"]["value"] < 0.01
    assert "Servers that are needed" in (tmp_path / "page.html").read_text()
    (tmp_path / "t.tape").write_bytes((tmp_path / "t.tape").read_bytes()[:-1])
    told = inside("capacity", "t.tape", "--servers", "fleet.toml")
    assert (told.returncode, "t.tape: " in told.stderr) == (2, True)


_EXPERIMENT = """name = "guess"
question = "How many servers?"
clients = ["native"]
servers = ["memcached"]
timing = { measure_ms = 40000 }
[[workloads]]
name = "guess"
mix = { fetch = 9, set = 1 }
prefill = 0
keys = { count = 1000 }
values = { size = "900" }
[[loads]]
name = "guess"
schedule = "poisson"
rate = 500
"""


def test_an_experiment_is_planned_by_its_tape(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "guess.toml").write_text(_EXPERIMENT)
    told = _told(inside, tmp_path / "guess.toml", _SMALL, "--out", "page.html")["fleet"]
    assert told["origin"]["source"] == "tape"
    assert told["requests"] == pytest.approx(20_000, rel=0.1)
    assert told["demand"]["requests_per_s"] == pytest.approx(500, rel=0.2)
    assert "<title>guess.toml: " in (tmp_path / "page.html").read_text()
    (tmp_path / "guess.toml").write_text(_EXPERIMENT + '[[loads]]\nname = "b"\n')
    two = inside("capacity", "guess.toml", "--servers", "fleet.toml")
    assert (two.returncode, "1 workloads and 2 loads" in two.stderr) == (2, True), two.stderr


@pytest.mark.parametrize("ring", ["ketama", "modulo"])
def test_keys_are_where_the_client_puts_them(inside: Inside, tmp_path: Path, ring: str) -> None:
    lines = [f"{number / 100:.2f},get,key-{number},20\n" for number in range(1000)]
    (tmp_path / "t.csv").write_text("time,op,key,size\n" + "".join(lines))
    with _servers(3, "memcached:memory=16") as servers:
        addresses = [server.addresses[0] for server in servers]
        drive = [binary_path(), "drive", "--server", ",".join(addresses), "--hashing", ring]
        drive += ["--keys", "1000", "--key-pattern", "key-{index}", "--prefill", "1"]
        drive += ["--warmup", "0s", "--ops", "1"]
        subprocess.run(drive, check=True, capture_output=True)
        held = [int(server.stats()["curr_items"]) for server in servers]
    text = f"ring = {json.dumps(ring)}\naddresses = {json.dumps(addresses)}\n{_SMALL}number = 3\n"
    fleet = _told(inside, tmp_path / "t.csv", text)["fleet"]
    assert fleet["are_real"]
    assert fleet["played"]["keys_of_server"] == held
    assert fleet["counts"][0]["hottest"]["median"] == fleet["counts"][0]["hottest"]["worst"]


def _stored(outcomes: list[Outcome], made: Experiment) -> None:
    """A run `measured` in the folder of runs."""
    head = made_header("measured", experiment=made)
    kept(Path("results"), head, numbered(outcomes))


def _closed_loops(rates: dict[int, int]) -> list[Outcome]:
    """The outcomes of closed loops against memcacheds with these threads."""
    return [
        of
        for threads, rate in rates.items()
        for of in all_at(trials("a", rate), server=f"memcached:threads={threads}")
    ]


def test_the_rate_of_more_threads_comes_from_a_law(inside: Inside, trace: Path) -> None:
    _stored(_closed_loops({1: 1000, 2: 1900, 4: 3400, 6: 4600}), experiment(["a"]))
    eight = '[[server]]\nname = "eight"\nmemory = "64m"\nthreads = 8\n'
    two = '[[server]]\nname = "two"\nmemory = "64m"\nthreads = 2\n'
    typed = '[[server]]\nname = "typed"\nmemory = "64m"\nthreads = 32\nrate = 500\n'
    told = _told(inside, trace, f"peak_rate = 9000\n{eight}{two}{typed}", "--rate-of", "measured")
    fleet = told["fleet"]
    by_law, measured = fleet["rates"]["kinds"]
    assert (by_law["kind"], by_law["by_law"]) == ("eight", True)
    # By hand: X(8) = 8 λ / (1 + 7 σ) with σ a little above 0.05.
    assert by_law["rate"] == pytest.approx(6000, rel=0.1)
    assert by_law["low"] < by_law["rate"]
    assert by_law["servers_if_low"] >= 2
    assert (measured["kind"], measured["by_law"]) == ("two", False)
    assert measured["rate"] == pytest.approx(2090, rel=0.02)
    # Of the made trials: 300 ms of CPU time in each of a second.
    assert fleet["rates"]["points"][1]["service_us"] == pytest.approx(3e5 / 2090, rel=0.1)
    shown = inside("capacity", str(trace), "--servers", "fleet.toml", "--rate-of", "measured")
    assert "Universal scalability law over threads" in shown.stdout


def test_the_rate_of_a_search_has_its_interval(inside: Inside, trace: Path) -> None:
    met, missed = 400_000, 2_000_000
    steps = [at_rate("a", rate, met if rate <= 1000 else missed)
             for rate in (1000, 1500, 1250, 1120, 1060, 1000)]  # fmt: skip
    outcomes = all_at([closed("a", 2000), *steps], server="memcached:threads=4")
    _stored(outcomes, search_experiment())
    four = '[[server]]\nname = "four"\nmemory = "64m"\n'
    fleet = _told(inside, trace, f"peak_rate = 9000\n{four}", "--rate-of", "measured")["fleet"]
    [kind] = fleet["rates"]["kinds"]
    assert (kind["rate"], fleet["rates"]["objective"]) == (1000, "p99<1ms")
    assert 700 < kind["low"] < 1000
    limits = {each["limit"]: each["servers"] for each in fleet["counts"][0]["limits"]}
    assert kind["servers_if_low"] > limits["rate"] > 9


def test_a_run_without_the_rate_is_one_error(inside: Inside, trace: Path) -> None:
    Path("fleet.toml").write_text('[[server]]\nname = "a"\nmemory = "64m"\nthreads = 16\n')
    _stored(_closed_loops({2: 1900}), experiment(["a"]))
    command = ("capacity", str(trace), "--servers", "fleet.toml", "--rate-of")
    few = inside(*command, "measured")
    assert (few.returncode, few.stdout) == (2, "")
    assert "it measured servers with 2 threads" in " ".join(few.stderr.split())
    other = made_header("embedded", experiment=experiment(["a"]))
    kept(Path("results"), other, trials("a", 100))
    for run, said in (("embedded", "it has no rate of a memcached"), ("none", "no run 'none'")):
        told = inside(*command, run)
        assert (told.returncode, said in " ".join(told.stderr.split())) == (2, True), told.stderr


@contextmanager
def _servers(number: int, spec: str) -> Generator[list[RunningServer]]:
    with ExitStack() as stack:
        yield [stack.enter_context(running(parse_spec(spec))) for _ in range(number)]


def test_a_killed_server_costs_what_was_predicted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    before, after = importlib.import_module("lost_server").lose_one(4, 2, 200, tmp_path)
    for predicted, measured in (before, after):
        # memcached moves its items in the background, at other times.
        assert measured.hits == pytest.approx(predicted.hits, abs=0.04)
        # The clients' ring decides where a key is: each load is exact, but for seconds at the ends.
        assert measured.parts == pytest.approx(predicted.parts, abs=0.005)
    # The loss is larger than what the tolerance would hide.
    assert before.predicted.hits - after.predicted.hits > 0.05
