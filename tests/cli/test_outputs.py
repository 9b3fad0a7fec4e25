"""Every verb of both programs, where its output cannot be written: one sentence, exit 1 or 2."""

import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from cachemark.cli.program import app
from cachemark.endpoints.servers import parse_spec, running
from cachemark.host import process
from tests.cli.unwritable import OUTPUTS, copy_of, ended, full, refused, refused_inside, store
from tests.conftest import ROOT

__all__ = ["store"]

VERBS = [name for name in app if not name.startswith("-")]
# For each verb arguments with which it prints something, and takes little time.
PRINTING: dict[str, list[list[str]]] = {
    "run": [["quick", "--client", "native", "--client", "reference", "--dry-run"]],
    "drive": [["embedded", "--keys", "10", "--duration", "10ms", "--warmup", "0s"]],
    "new": [["mine.toml", "--client", "native"]],
    "report": [[], ["--format", "json"]],
    "explain": [["INVALID"]],
    "compare": [["--client", "a", "--client", "b"]],
    "why": [["--client", "native", "--mix", "get=1", "--repeat", "3"]],
    "web": [["--port", "0"]],
    "history": [[], ["a"]],
    "export": [["2026-made", "made.zip"]],
    "import": [["run.zip", "--runs", "elsewhere"]],
    "suites": [[]],
    "clients": [[]],
    "servers": [[]],
    "probe": [["embedded"]],
    "trace": [
        ["convert", "made.csv", "made.trace"],
        ["convert", "made.csv", "made.trace", "--json"],
    ],
    "memory": [["embedded:memory=16m", "--sizes", "64k"]],
    "predict": [["made.csv", "--memory", "2m"], ["made.csv", "--memory", "2m", "--json"]],
    "capacity": [
        ["made.csv", "--servers", "fleet.toml"],
        ["made.csv", "--servers", "fleet.toml", "--json"],
    ],
    "plan": [["made.csv", "--servers", "fleet.toml"]],
    "calibrate": [["native", "--window-ms", "20", "--budget-us", "1"]],
    "doctor": [["--json"]],
    "setup": [["peers"]],
    "hosts": [["certs", "hosts.toml"]],
    "conform": [["reference", "--case", "get, half there"]],
    "fidelity": [["reference", "--case", "constant", "--no-awake"]],
    "resilience": [["native", "--dry-run"]],
    "protocol": [[]],
    "completion": [["bash"]],
}
# Verbs that print nothing on stdout, or need a memcached or a set-up that takes minutes.
NOT_PRINTING = {"agent", "man", "jmh", "record"}
ROWS = [[verb, *arguments] for verb, rows in PRINTING.items() for arguments in rows]
# The same of the engine. `SERVER` stands for the address of one.
ENGINE: dict[str, list[list[str]]] = {
    "serve": [["--listen", "127.0.0.1:0"]],
    "memcached": [["-h"], ["-V"], ["-i"]],
    "tape": [
        ["presets"],
        ["presets", "--json"],
        ["write", "--out", "t"],
        ["settings", "--keys", "9"],
    ],
    "trace": [["convert", "made.csv", "made.trace"]],
    "drive": [
        ["--server", "SERVER", "--keys", "9", "--warmup", "0s", "--duration", "10ms", *more]
        for more in ([], ["--json"], ["--json-lines"], ["--quiet"])
    ],
    "fidelity": [["F1"]],
    "stampede": [
        ["--server", "SERVER", "--callers", "2", "--ttl", "2", "--expiries", "1", *more]
        for more in (["--only", "win"], ["--only", "win", "--json"])
    ],
    "fault-proxy": [["--list"], ["--upstream", "127.0.0.1:1"]],
    "distance": [["--upstream", "127.0.0.1:1", "--round-trip", "1ms"]],
    "awake": [[], ["--stop-with-stdin"]],
    "unit-costs": [[]],
    "bench-store": [["--only", "pauses", "--memory", "16m"]],
    "store": [["init", "STORE", "--memory", "16m"]],
    "null-server": [[]],
    "null-client": [["--server", "SERVER", "--warmup", "0s", "--duration", "10ms"]],
    "completion": [["bash"]],
}
# A worker speaks with its caller alone: without one it ends when its stdin does.
# A recording needs a memcached.
ENGINE_NOT_PRINTING = {"worker", "man", "record"}
ENGINE_ROWS = [[verb, *arguments] for verb, rows in ENGINE.items() for arguments in rows]


@pytest.fixture(scope="module")
def server() -> Generator[str]:
    with running(parse_spec("embedded")) as found:
        yield found.addresses[0]


@pytest.fixture(scope="module")
def one_language(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of workers that has the reference worker only."""
    folder = tmp_path_factory.mktemp("workers")
    (folder / "reference").symlink_to(ROOT / "workers" / "reference")
    return folder


@pytest.fixture(autouse=True)
def _few_workers(one_language: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`clients` starts every worker, to ask for its version."""
    monkeypatch.setenv("CACHEMARK_WORKERS", str(one_language))


@pytest.fixture(autouse=True)
def _trace(tmp_path: Path) -> None:
    (tmp_path / "made.csv").write_text("op,key,size\nset,k,9\nget,k,9\n")
    (tmp_path / "fleet.toml").write_text(
        'peak_rate = 10\n[[server]]\nname = "small"\nmemory = "4m"\nrate = 150\n'
    )


def engine_verbs() -> set[str]:
    """The verbs that the engine's help lists."""
    command = [process.binary_path(), "--help"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    listed = said.partition("Commands:")[2].partition("Options:")[0]
    return {
        line.split()[0] for line in listed.splitlines() if line.startswith("  ") and line[2] != " "
    }


def test_the_tables_have_every_verb() -> None:
    assert set(PRINTING) | NOT_PRINTING == set(VERBS)
    assert set(ENGINE) | ENGINE_NOT_PRINTING | {"help"} == engine_verbs()


@pytest.mark.parametrize("arguments", ROWS, ids=" ".join)
def test_cachemark(store: Path, tmp_path: Path, arguments: list[str]) -> None:
    refused_inside(arguments, copy_of(store, tmp_path), full)


@pytest.mark.parametrize("output", ["pipe", "closed"])
@pytest.mark.parametrize("arguments", [["history"], ["clients"]], ids=" ".join)
def test_pipes_and_closed_streams(store: Path, arguments: list[str], output: str) -> None:
    refused([sys.executable, "-m", "cachemark", *arguments], store, OUTPUTS[output])


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_every_verb(tmp_path: Path, verb: str) -> None:
    refused_inside([verb, "--help"], tmp_path, full)


@pytest.mark.parametrize("output", ["full", "pipe"])
@pytest.mark.parametrize("arguments", ENGINE_ROWS, ids=" ".join)
def test_engine(tmp_path: Path, server: str, arguments: list[str], output: str) -> None:
    store = f"test-{os.getpid()}-{output}"
    words = [{"SERVER": server, "STORE": store}.get(word, word) for word in arguments]
    try:
        refused([process.binary_path(), *words], tmp_path, OUTPUTS[output])
    finally:
        subprocess.run(
            [process.binary_path(), "store", "destroy", store], capture_output=True, check=False
        )


@pytest.mark.parametrize("verb", ["", *ENGINE, *sorted(ENGINE_NOT_PRINTING)])
def test_the_help_of_the_engine(tmp_path: Path, verb: str) -> None:
    words = [verb, "-h" if verb == "memcached" else "--help"]
    refused([process.binary_path(), *filter(None, words)], tmp_path, full)
    refused([process.binary_path(), "--version"], tmp_path, full)


@pytest.mark.parametrize(
    "options",
    [["--depth", "1000000000"], ["--connections", "4294967295"], ["--threads", "1000000"]],
    ids=" ".join,
)
def test_drive_refuses_absurd_numbers(tmp_path: Path, options: list[str]) -> None:
    command = [process.binary_path(), "drive", "--server", "127.0.0.1:1", *options]
    status, said = ended(command, tmp_path, subprocess.DEVNULL)
    assert status == 2
    assert "at most" in said
    assert len(said.splitlines()) == 1
