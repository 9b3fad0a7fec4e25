"""Hashes of the programs that ran, in outcomes and in comparisons of runs."""

import hashlib
import os
import sys
from pathlib import Path

import msgspec

from cachemark.checks.doctor import software
from cachemark.host.binaries import binaries, of_command, of_file
from cachemark.host.facts import facts
from cachemark.host.process import binary_path
from cachemark.model.outcome import Binary, Outcome
from cachemark.report.compare.differences import differences
from cachemark.report.compare.pairs import Pair
from tests.builders.outcomes import experiment, header, measured
from tests.builders.small_experiments import read_outcomes
from tests.checks.test_doctor import by_name
from tests.conftest import Cli


def sha256(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def test_a_process_is_identified_by_its_executable() -> None:
    (found,) = binaries("worker", [os.getpid(), os.getpid()])
    assert found.sha256 == sha256(sys.executable)
    assert binaries("worker", [2**22 + 1]) == []


def test_a_changed_file_has_another_hash(tmp_path: Path) -> None:
    file = tmp_path / "server"
    file.write_bytes(b"one")
    first = of_file("server", file, "server")
    file.write_bytes(b"second")
    second = of_file("server", file, "server")
    assert first == Binary(role="server", path="server", sha256=hashlib.sha256(b"one").hexdigest())
    assert second is not None
    assert second.sha256 == hashlib.sha256(b"second").hexdigest()
    assert of_file("server", tmp_path / "gone", "gone") is None


def test_scripts_and_archives_of_a_command_are_hashed_too(tmp_path: Path) -> None:
    for name in ("a.jar", "b.jar", "worker.py"):
        (tmp_path / name).write_text(name)
    path = os.pathsep.join(str(tmp_path / name) for name in ("a.jar", "b.jar"))
    command = ["java", "-cp", path, str(tmp_path / "worker.py"), "folsom"]
    names = [Path(found.path).name for found in of_command("script", command)]
    assert names == ["a.jar", "b.jar", "worker.py"]


def with_binaries(server: str, script: str) -> Outcome:
    found = [
        Binary(role="server", path="/usr/bin/memcached", sha256=server * 64),
        Binary(role="script", path="/x/worker.py", sha256=script * 64),
    ]
    return msgspec.structs.replace(measured("a", 0, 1000), binaries=found)


def test_another_build_of_the_same_version_is_a_difference() -> None:
    made = header(experiment(["a"]))
    before, after = with_binaries("1", "5"), with_binaries("2", "5")
    cell = before.trial.cell
    pair = Pair(baseline=cell, other=cell, before=[[before]], after=[[after]])
    assert differences((made, made), [pair]) == ["binary of embedded: 111111111111 → 222222222222"]
    unknown = Pair(baseline=cell, other=cell, before=[[measured("a", 0, 1000)]], after=[[after]])
    assert differences((made, made), [unknown]) == []


def test_the_doctor_lists_the_binaries_that_outcomes_keep() -> None:
    check = by_name(software.software(facts()))["binaries"]
    assert check.status == "ok"
    assert f"cachemark-engine {sha256(binary_path())[:12]}" in check.value
    assert f"python {sha256(sys.executable)[:12]}" in check.value


EXPERIMENT = """
name = "hashed"
question = "?"
clients = ["native"]
servers = ["embedded:memory=16m,threads=1"]
blocks = 1
[[workloads]]
name = "w"
mix = { get = 1 }
keys = { count = 100 }
ops = 100
[[loads]]
name = "l"
[timing]
warmup_ms = 0
"""


def test_an_outcome_has_the_hashes_of_server_and_worker(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text(EXPERIMENT)
    assert cli("run", "e.toml").returncode == 0
    (outcome,) = read_outcomes(tmp_path)
    # Both are the engine.
    engine = sha256(binary_path())
    assert [(of.role, of.sha256) for of in outcome.binaries] == [
        ("server", engine),
        ("worker", engine),
    ]
