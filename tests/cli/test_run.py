"""The real CLI, end to end: real servers, the native client, miniature bad workers."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from cachemark.model.outcome import Outcome
from cachemark.runs.storage.store import open_run
from tests.builders.small_experiments import TRIALS, read_outcomes, write
from tests.cli.in_process import Inside
from tests.conftest import Cli, bad_worker, cli_in


def children_of(pid: int) -> set[int]:
    """All processes whose session was started below a process, however deep."""
    found: set[int] = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.add(int(stat.parent.name))
    return found | {deeper for child in found for deeper in children_of(child)}


def is_alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_run_measures_and_reports(cli: Cli, tmp_path: Path) -> None:
    user = "-u root" if os.geteuid() == 0 else ""
    servers = [
        *("embedded", "embedded:io=blocking", "memcached"),
        f"command:memcached -c 100 {user} -p {{port}}",
    ]
    # A number of operations, as a busy machine may leave time for very few of them in a window.
    enough = TRIALS.replace("records = 1000", "records = 1000\nops = 500")
    ended = cli("run", write(tmp_path, enough, servers=json.dumps(servers)))
    assert ended.returncode == 0, ended.stderr
    assert "mixed · one" in ended.stdout
    kept = read_outcomes(tmp_path)
    assert sorted(outcome.trial.cell.server for outcome in kept) == sorted(2 * servers)
    for outcome in kept:
        assert outcome.verdict == "VALID", outcome.reasons
        assert outcome.measure is not None
        assert set(outcome.measure.operations) == {"get", "set", "mget"}
        assert outcome.measure.operations["get"].misses == 0
        assert outcome.server is not None
        assert outcome.server_use is not None
        assert outcome.server_use.cpu_ns > 0
    (report,) = tmp_path.glob("results/*/report.md")
    rows = report.read_text().replace("\\", "")
    assert all(f"| {server}" in rows for server in servers), rows


def test_reports_in_every_form(inside: Inside, tmp_path: Path) -> None:
    inside("run", write(tmp_path))
    for form, sign in (
        ("table", "native"),
        ("markdown", "| native"),
        ("csv", "client,"),
        ("json", "{"),
    ):
        ended = inside("report", "--format", form)
        assert ended.returncode == 0, ended.stderr
        assert sign in ended.stdout
    assert json.loads(inside("report", "--format", "json").stdout)["groups"]
    unknown = inside("report", "--format", "pdf")
    assert unknown.returncode == 2
    assert 'Choose from: "table"' in unknown.stderr


def test_open_loop_keeps_its_schedule(inside: Inside, tmp_path: Path) -> None:
    ended = inside("run", write(tmp_path), "--rate", "500", "--connections", "8")
    assert ended.returncode in (0, 1), ended.stderr  # a noisy machine may make it INVALID
    for outcome in read_outcomes(tmp_path):
        assert outcome.measure is not None
        due = sum(op.attempts for op in outcome.measure.operations.values())
        assert due + outcome.measure.unsent == outcome.tape.ops if outcome.tape else 0
        assert outcome.measure.send_lag


def test_several_processes_are_one_client(inside: Inside, tmp_path: Path) -> None:
    ended = inside("run", write(tmp_path), "--set", "loads.processes=2", "--blocks", "1")
    assert ended.returncode == 0, ended.stderr
    (outcome,) = read_outcomes(tmp_path)
    assert outcome.verdict == "VALID"
    assert outcome.measure is not None
    assert outcome.measure.max_in_flight == 2


def test_killed_half_way_a_run_is_finished_and_nothing_repeated(cli: Cli, tmp_path: Path) -> None:
    name = write(tmp_path, blocks="4", measure_ms="400")
    process = subprocess.Popen(
        [sys.executable, "-m", "cachemark", "run", name], cwd=tmp_path, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    seen = b""
    while b"trial 2 of 4" not in seen:
        chunk = process.stderr.readline()
        assert chunk, seen
        seen += chunk
    below = children_of(process.pid)
    process.kill()
    process.wait()
    process.stderr.close()
    _all_end(below)
    kept = read_outcomes(tmp_path)
    assert 2 <= len(kept) < 4
    # A torn last line, as a kill during the write leaves it.
    (path,) = tmp_path.glob("results/*/outcomes.jsonl")
    with path.open("ab") as file:
        file.write(b'{"format":1,"run":"torn')
    ended = cli("run", "--resume")
    assert ended.returncode == 0, ended.stderr
    finished = read_outcomes(tmp_path)
    assert finished[: len(kept)] == kept
    assert [outcome.trial.index for outcome in finished] == [0, 1, 2, 3]


def test_an_interrupted_run_leaves_nothing_and_says_how_to_resume(tmp_path: Path) -> None:
    name, kept = write(tmp_path, measure_ms="20000"), "kept elsewhere"
    process = subprocess.Popen(
        [sys.executable, "-m", "cachemark", "run", name, "--runs", kept],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 90
    while len(below := children_of(process.pid)) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 130
    (folder,) = tmp_path.glob(f"{kept}/*")
    # A reader types the command as it stands, wherever the runs are.
    assert f"cachemark run --resume '{folder.relative_to(tmp_path)}'" in errors
    assert open_run(str(folder), tmp_path).id == folder.name
    assert "Traceback" not in errors
    _all_end(below)


def _all_end(pids: set[int]) -> None:
    deadline = time.monotonic() + 15
    while any(map(is_alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not [pid for pid in pids if is_alive(pid)]


FAILING = {
    "exits_at_hello": "exited with status 3: no such module: everything",
    "exits_with_a_child": "exited with status 3: it leaves a process behind",
    "never_ready": "no answer to hello within 5 s",
    "prints_garbage": "not an answer",
    "prints_a_stack_trace": "not an answer",
    "killed_during_run": "was killed by signal 9",
    "malformed_histograms": "not a histogram",
    "malformed_timeline": "two lists differ in length",
    "never_done": "sent no message for 2 s of measure",
    "endless_progress": "has not ended its measure",
    "error_at_prepare": "connect: connection refused",
}
LYING = {
    "claims_unsent_operations": "the server's cmd_get rose by 0, the client counted 1000",
    "inconsistent_counts": "3 replies with a wrong value",
}


class BadRun(NamedTuple):
    """A run with bad workers: how it ended, and the outcomes by worker."""

    ended: subprocess.CompletedProcess[str]
    outcomes: dict[str, Outcome]


@pytest.fixture(scope="module")
def bad_run(tmp_path_factory: pytest.TempPathFactory) -> BadRun:
    """One run has all of them and the native client: none may disturb another."""
    folder = tmp_path_factory.mktemp("bad-workers")
    clients = [bad_worker(name) for name in (*FAILING, *LYING)]
    name = write(folder, clients=json.dumps([*clients, "native"]), blocks="1")
    ended = cli_in(folder)("run", name, timeout_s=1500)
    outcomes = {Path(o.trial.cell.client).stem: o for o in read_outcomes(folder)}
    return BadRun(ended, outcomes)


def test_bad_workers_do_not_disturb_the_others(bad_run: BadRun) -> None:
    assert bad_run.ended.returncode == 1
    assert "Traceback" not in bad_run.ended.stderr.replace("'Traceback", "")
    assert bad_run.outcomes.keys() == {*FAILING, *LYING, "native"}
    assert bad_run.outcomes["native"].verdict == "VALID"


@pytest.mark.parametrize(("worker", "says"), FAILING.items())
def test_a_bad_worker_fails_its_trial(bad_run: BadRun, worker: str, says: str) -> None:
    assert bad_run.outcomes[worker].state == "failed"
    assert says in bad_run.outcomes[worker].reason
    assert says in bad_run.ended.stderr


def test_a_slow_worker_may_be_given_time(bad_run: BadRun) -> None:
    assert "an experiment may raise timing.ready_ms" in bad_run.ended.stderr


@pytest.mark.parametrize(("worker", "says"), LYING.items())
def test_a_lying_worker_is_invalid(bad_run: BadRun, worker: str, says: str) -> None:
    assert bad_run.outcomes[worker].verdict == "INVALID"
    assert any(says in reason for reason in bad_run.outcomes[worker].reasons)
    assert says in bad_run.ended.stderr


def test_what_cannot_run_is_a_row_with_the_remedy(inside: Inside, tmp_path: Path) -> None:
    clients = json.dumps(
        [
            "command:/no/such/program",
            *map(bad_worker, ("unsupported", "speaks_version_1")),
            "native",
        ]
    )
    ended = inside("run", write(tmp_path, clients=clients, blocks="1"))
    assert ended.returncode == 0, ended.stderr
    said = " ".join(ended.stdout.split())  # wrapped wherever a line is full
    assert "no text protocol" in said
    assert "use another client" in said
    assert "speaks version 1 of the worker protocol" in said
    assert "/no/such/program is not on this machine" in said


def test_a_server_that_cannot_start_fails_its_trials(inside: Inside, tmp_path: Path) -> None:
    servers = json.dumps(["command:false {port}", "remote:127.0.0.1:1", "embedded"])
    ended = inside("run", write(tmp_path, servers=servers, blocks="1"), "--details")
    assert ended.returncode == 1
    assert "the server exited with status 1" in ended.stderr
    assert "server 127.0.0.1:1: cannot connect" in ended.stderr
    states = [outcome.state for outcome in read_outcomes(tmp_path)]
    assert sorted(states) == ["failed", "failed", "measured"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run"], "name a suite or a TOML file"),
        (["run", "qick"], "did you mean 'quick'?"),
        (["run", "none.toml"], "none.toml: cannot be read"),
        (["run", "experiment.toml", "--client", "natif"], "did you mean 'native'?"),
        (["run", "experiment.toml", "--client", "command:a 'b"], "No closing quotation"),
        (["run", "experiment.toml", "--server", "embeded"], "did you mean 'embedded'?"),
        (["run", "experiment.toml", "--server", "embedded:ioo=x"], "did you mean 'io'?"),
        (["run", "experiment.toml", "--server", "command:x"], "put {port} in it"),
        (["run", "experiment.toml", "--rate", "-1"], "for '--rate <RATE>': \"-1\" is no number"),
        (
            ["run", "experiment.toml", "--set", "loads.schedule=closed", "--rate", "10"],
            "a closed loop has no rate",
        ),
        (["run", "experiment.toml", "--threads", "0"], "--threads: Expected `int` >= 1"),
        (["run", "experiment.toml", "--threads", "-1"], "--threads: Expected `int` >= 1"),
        (["run", "experiment.toml", "--threads", "9" * 30], "--threads: Expected `int` <="),
        (["run", "experiment.toml", "--server", "cluster:-1:embedded"], "'cluster:-1:embedded'"),
        (["run", "experiment.toml", "--blocks", "many"], "many"),
        (
            ["run", "experiment.toml", "--set", "placement.worker=999"],
            "CPU 999 cannot be used here",
        ),
        (["run", "experiment.toml", "--workload", "none"], "it has: mixed"),
        (["run", "--resume"], "holds no run"),
        (["run", "--nonsense"], "see `cachemark run --help`"),
        (["nonsense"], "nonsense"),
        (["report", "nonsense"], "no run 'nonsense'"),
    ],
)
def test_bad_input_is_one_clear_error(
    inside: Inside, tmp_path: Path, arguments: list[str], says: str
) -> None:
    write(tmp_path)
    ended = inside(*arguments)
    assert ended.returncode == 2, ended.stdout + ended.stderr
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not list(tmp_path.glob("results/*"))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("blocks = 0", "experiment.toml:5: blocks: Expected `int` >= 1"),
        ("blokcs = 1", "experiment.toml:5: blokcs: no such setting"),
        ("blocks = ", "experiment.toml: not TOML"),
    ],
)
def test_a_slip_in_a_file_names_the_line(
    inside: Inside, tmp_path: Path, line: str, says: str
) -> None:
    write(tmp_path, TRIALS.replace("blocks = 2", line))
    ended = inside("run", "experiment.toml")
    assert ended.returncode == 2
    assert says in ended.stderr


def test_keys_that_cannot_be_made_are_known_before_the_run(inside: Inside, tmp_path: Path) -> None:
    text = TRIALS.replace("count = 100,", 'count = 100, length = "1",')
    ended = inside("run", write(tmp_path, text))
    assert ended.returncode == 2
    assert "100 unique keys need at least 2 characters" in ended.stderr
    assert not list(tmp_path.glob("results/*"))


def test_two_processes_do_not_share_a_run(cli: Cli, tmp_path: Path) -> None:
    cli("run", write(tmp_path, blocks="1"))
    (lock,) = tmp_path.glob("results/*/lock")
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        ended = cli("run", "--resume")
    assert ended.returncode == 2
    assert "another process is running it" in ended.stderr


@pytest.mark.parametrize(
    ("verb", "sign"),
    [
        ("suites", "emcache"),
        pytest.param("clients", "native", marks=pytest.mark.slow("starts every worker")),
        ("servers", "remote:HOST:PORT"),
        ("doctor", "CPU"),
        ("protocol", "# The worker protocol"),
    ],
)
def test_lists(inside: Inside, verb: str, sign: str) -> None:
    ended = inside(verb)
    assert ended.returncode in (0, 1), ended.stderr
    assert sign in ended.stdout


def test_a_plan_is_printed_and_the_same_each_time(inside: Inside, tmp_path: Path) -> None:
    name = write(tmp_path, servers='["embedded", "memcached"]', blocks="3")
    words = "run", name, "--dry-run", "--details"
    first, second = inside(*words), inside(*words)
    assert first.stdout == second.stdout
    assert len(first.stdout.splitlines()) == 6
    summary = inside("run", name, "--dry-run").stdout.splitlines()
    assert [line.split(" × ")[0].strip() for line in summary] == ["3", "3"]
    assert inside(*words, "--set", "seed=2").stdout != first.stdout


@pytest.mark.slow("fills a server to 80 %")
def test_the_emcache_suite_fills_to_its_part(inside: Inside, tmp_path: Path) -> None:
    ended = inside("run", "emcache", "--quick", "--client", "native", "--blocks", "1", "--details")
    assert ended.returncode == 0, ended.stderr
    for title in ("Set/get a constant key", "Fill the cache to 80 %", "Memory efficiency at 80 %"):
        assert title in ended.stdout
    assert "published: emcache" in ended.stdout
    for outcome in read_outcomes(tmp_path):
        assert outcome.verdict == "VALID", outcome.reasons
        if outcome.trial.cell.workload == "fill":
            held, limit = (int(outcome.stats_after[n]) for n in ("bytes", "limit_maxbytes"))
            assert abs(100 * held / limit - 80) < 1
