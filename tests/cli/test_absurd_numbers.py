"""Numbers and files that no machine can carry out are refused at once, before anything starts."""

import resource
import subprocess
from pathlib import Path

import pytest

from cachemark.host import process
from cachemark.host.sandbox import SandboxLimits, run_limited
from cachemark.model.errors import UsageError
from cachemark.model.experiment_file import parse
from tests.cli.in_process import Inside


@pytest.mark.parametrize(
    "options",
    [
        ["--blocks", "1000000000000"],
        ["--blocks", "100001"],
        ["--depth", "1000000000"],
        ["--connections", "4294967295"],
        ["--set", "loads.processes=100000"],
        ["--threads", "1000000"],
        ["--set", "loads.processes=1000", "--connections", "60000"],
        ["--connections", "60000", "--depth", "60000"],
    ],
)
def test_absurd_options_end_with_2(inside: Inside, tmp_path: Path, options: list[str]) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    said = inside("run", "quick", "--client", "native", "--server", "embedded", *options)
    assert said.returncode == 2
    assert "more than" in said.stderr or "<=" in said.stderr
    assert not (tmp_path / "results").exists()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - before < 10


@pytest.mark.parametrize(
    "text",
    [
        "a" + ".a" * 20_000 + " = 1",
        "[a" + ".a" * 20_000 + "]",
        "x = {a" + " . a" * 20_000 + " = 1}",
        'a."\\"".' + '"b".' * 20_000 + "c = 1",
        "name = '" + "x" * 5_000_000 + "'",
        "clients = [" + "'a'," * 5_000 + "]",
    ],
)
def test_a_table_that_is_deep_or_long_takes_no_memory(text: str) -> None:
    def read() -> bytes:
        with pytest.raises(UsageError, match=r"f\.toml"):
            parse(text, "f.toml")
        return b""

    run_limited(read, SandboxLimits(memory_bytes=100 * 2**20, time_s=20, file_bytes=0))


def test_a_key_of_a_few_parts_is_read() -> None:
    with pytest.raises(UsageError, match="no such setting"):
        parse("a.b.c.d = 1\nquestion = 'a.b.c.d.e.f.g.h.i.j.k'", "f.toml")


@pytest.mark.parametrize(
    "options",
    [
        ["--server", "cluster:DIGITS:embedded"],
        ["--server", "embedded:threads=DIGITS"],
        ["--server", "embedded:memory=DIGITS"],
        ["--server", "embedded:memory=DIGITSm"],
        ["--server", "memcached:connections=DIGITS"],
        ["--server", "remote:127.0.0.1:DIGITS"],
        ["--set", "workloads.sequence=set@0-DIGITS"],
        ["--blocks", "DIGITS"],
        ["--set", "seed=DIGITS"],
        ["--rate", "DIGITS"],
        ["--keys", "DIGITS"],
        ["--size", "DIGITS"],
        ["--measure-ms", "DIGITS"],
    ],
    ids=" ".join,
)
def test_numbers_of_thousands_of_digits_are_refused_in_words(
    inside: Inside, tmp_path: Path, options: list[str]
) -> None:
    words = [word.replace("DIGITS", "9" * 5000) for word in options]
    said = inside("run", "quick", "--client", "native", *words)
    assert said.returncode == 2
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    "options",
    [
        ["--keys", "4G"],
        ["--ops", "4G", "--trace", "t.csv", "--schedule", "poisson", "--rate", "1G"],
        ["--trace", "t.csv", "--schedule", "poisson", "--rate", "1G", "--duration", "3s"],
        ["--rate", "1e308g", "--duration", "1s"],
        ["--rate", "1e300", "--duration", "1s"],
        ["--keys", "10", "--run", "65535", "--mix", "mget=1", "--ops", "1G"],
    ],
    ids=" ".join,
)
def test_a_tape_larger_than_memory_is_refused_before_it_exists(
    tmp_path: Path, options: list[str]
) -> None:
    trace = "time,op,key,size\n0,get,k,1\n1,set,k,1\n"
    (tmp_path / "t.csv").write_text(trace, encoding="utf-8")
    command = ["prlimit", f"--as={2**30}", process.binary_path(), "tape", "write", "--out", "t"]
    ended = subprocess.run(
        [*command, *options], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2, ended.stderr
    assert not (tmp_path / "t").exists()
