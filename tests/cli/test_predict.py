"""`cachemark predict`: exact and sampled, beside real servers, and what cannot be predicted."""

import json
import random
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cachemark.host.process import binary_path
from tests.cli.in_process import Inside
from tests.golden import assert_golden

_GOLDEN = Path(__file__).parent / "golden"
_KEYS, _GETS = 5000, 30_000
_HEADER = "time,op,key,size,ttl\n"
_MANY = "".join(f"{number},get,{number},10,\n" for number in range(3000))


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seconds of gets of 5,000 keys, each as likely, whose items have a chunk of 1,184 B."""
    drawn = random.Random(4)
    lines = [
        f"{number / 15_000:.4f},get,user:{drawn.randrange(_KEYS):05d},1000,\n"
        for number in range(_GETS)
    ]
    path = tmp_path_factory.mktemp("trace") / "uniform.csv"
    path.write_text(_HEADER + "".join(lines))
    return path


def _curves(told: str) -> dict[str, list[dict[str, Any]]]:
    curves = json.loads(told)["predicted"]["prediction"]["curves"]
    return {curve["policy"]: curve["points"] for curve in curves}


def test_the_screen(inside: Inside, trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    options = ("--memory", "2m,4m,8m", "--policies", "memcached,lru")
    shown = inside("predict", str(trace), *options)
    assert shown.returncode == 0, shown.stderr
    assert_golden("table", shown.stdout, _GOLDEN / "predict.txt")


def test_what_fits_misses_once_and_a_part_misses_its_part(inside: Inside, trace: Path) -> None:
    told = inside("predict", str(trace), "--memory", "1m,3m,64m", "--json")
    assert told.returncode == 0, told.stderr
    keys = [line.split(",")[2] for line in trace.read_text().splitlines()[1:]]
    first = int(len(keys) * 0.2)
    new = len(set(keys)) - len(set(keys[:first]))
    for policy, points in _curves(told.stdout).items():
        misses = [point["misses"]["value"] for point in points]
        assert misses[2] == pytest.approx(new / (len(keys) - first), abs=1e-9), policy
        assert misses[0] > misses[1] > misses[2]
    # 885 chunks of a page; which of them are evicted does not matter where all keys are as likely.
    for point, pages in zip(_curves(told.stdout)["memcached"], (1, 3), strict=False):
        expected = 1 - pages * 885 / _KEYS
        assert point["misses"]["value"] == pytest.approx(expected, abs=0.02)


def test_a_part_of_the_keys_has_an_error(inside: Inside, tmp_path: Path) -> None:
    drawn = random.Random(5)
    # With this many keys, few have a 20,000th of all requests and are followed anyhow.
    lines = [f"{place},get,{drawn.randrange(60_000)},100,\n" for place in range(100_000)]
    (tmp_path / "t.csv").write_text(_HEADER + "".join(lines))
    options = ("--memory", "4m,8m", "--policies", "lru", "--json")
    exact = _curves(inside("predict", "t.csv", *options).stdout)["lru"]
    sampled = _curves(inside("predict", "t.csv", *options, "--sample", "1/3").stdout)["lru"]
    for sample, is_withheld in (("all", False), ("auto", False), ("1/3", True)):
        shown = inside("predict", "t.csv", "--memory", "4m", "--sample", sample)
        assert shown.returncode == 0, shown.stderr
        screen = " ".join(shown.stdout.split())
        assert ("`--sample all` shows them all" in screen) == is_withheld, screen
        assert ("of the reads miss in memcached" in screen) != is_withheld, screen
    for of_all, of_part in zip(exact, sampled, strict=True):
        assert of_all["misses"]["error"] == 0 < of_part["misses"]["error"] < 0.05
        difference = of_all["misses"]["value"] - of_part["misses"]["value"]
        assert abs(difference) < 4 * of_part["misses"]["error"]


def test_real_servers_miss_as_predicted(inside: Inside, trace: Path, tmp_path: Path) -> None:
    page = tmp_path / "curve.html"
    told = inside(
        *("predict", str(trace), "--memory", "2m,3m,4m", "--check", "2"),
        *("--policies", "memcached,embedded", "--json", "--out", str(page)),
    )
    assert told.returncode == 0, told.stderr
    checks = json.loads(told.stdout)["checks"]
    assert [(each["server"], each["memory_bytes"] >> 20) for each in checks] == [
        ("memcached", 2), ("memcached", 4), ("embedded", 2), ("embedded", 4),
    ]  # fmt: skip
    for each in checks:
        assert each["measured"] == pytest.approx(each["predicted"]["value"], abs=0.04), each
        assert (each["reads"], each["refused"]) == (int(_GETS * 0.8), 0)
        is_old = each["version"].startswith(
            "1.6.1"
        )  # Debian's, before pages moved with their items
        policy = "memcached-1.6.33" if is_old else each["server"]
        assert each["policy"] == policy
    text = page.read_text()
    assert "Predicted beside measured" in text
    assert text.count("<svg") > 4


@pytest.mark.parametrize(
    ("lines", "options", "said"),
    [
        ("0,get,a,,\n1,set,a,,\n", [], "no operation has a size"),
        ("0,set,a,10,\n1,set,b,10,\n", [], "nothing can miss"),
        ("", [], "it has no operations"),
        ("0,get,a,10,\n1,get,b,10,\n", ["--sample", "1/2"], "1000 are the least"),
        ("0,get,a,10,\n", ["--memory", "1500k"], "whole MiB"),
        ("0,get,a,10,\n", ["--policies", "fifo"], "memcached-1.6.33, embedded or lru"),
        ("0,get,a,10,\n", ["--warm-up", "1"], "0 to 0.9"),
        ("0,get,a,10,\n", ["--server", "memcached"], "add --check 2"),
        ("0,get,a,10,\n", ["--check", "11"], "0 to 10 sizes"),
        ("0,get,a,10,\n", ["--check", "1", "--server", "yrmcds"], "nothing is predicted for it"),
        ("0,get,a,10,\n", ["--check", "1", "--server", "memcached:memory=9m"], "leave it out"),
        ("0,get,a,10,\n", ["--check", "1", "--policies", "lru"], "add memcached"),
        (_MANY, ["--sample", "1/2", "--check", "1"], "add --sample all"),
    ],
)
def test_what_cannot_be_predicted(
    inside: Inside, tmp_path: Path, lines: str, options: list[str], said: str
) -> None:
    (tmp_path / "t.csv").write_text(_HEADER + lines)
    memory = [] if "--memory" in options else ["--memory", "1m"]
    told = inside("predict", "t.csv", *memory, *options)
    assert told.returncode == 2
    assert said in " ".join(told.stderr.split())


def test_operations_that_are_not_simulated_are_counted(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(_HEADER + "0,get,a,10,\n1,append,a,10,\n1,get,a,10,\n")
    (tmp_path / "fleet.toml").write_text('[[server]]\nname = "one"\nmemory = "64m"\n')
    for verb in (["predict", "--memory", "1m"], ["capacity", "--servers", "fleet.toml"]):
        told = inside(*verb, "t.csv")
        assert told.returncode == 0, told.stderr
        assert "Left out: 1 operations that are not simulated" in " ".join(told.stdout.split())


def test_a_trace_of_some_keys_is_not_played(inside: Inside, trace: Path) -> None:
    assert inside("trace", "convert", str(trace), "t.trace", "--sample", "1/4").returncode == 0
    told = inside("predict", "t.trace", "--memory", "2m", "--check", "1")
    assert told.returncode == 2
    assert "one key of 4" in told.stderr
    predicted = inside("predict", "t.trace", "--memory", "2m", "--policies", "lru")
    assert "The file has one key of 4" in predicted.stdout
    assert "±" in predicted.stdout
    withheld = inside("predict", "t.trace", "--memory", "2m", "--policies", "memcached")
    assert "record more keys" in " ".join(withheld.stdout.split())
    assert withheld.stdout.startswith("t.trace: too few keys were followed to tell anything")


_PEAK_KB = """
import os, sys
_, status, used = os.wait4(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ), 0)
print(status, used.ru_maxrss)
"""


def test_5000_hot_keys_need_less_than_16_mb(tmp_path: Path) -> None:
    drawn = random.Random(5)
    path = tmp_path / "large.og"
    # oracleGeneral: second, key, size, next request. Half of 600,000 gets are of 5,000 keys.
    keys = (drawn.randrange((5000, 400_000)[number % 2]) for number in range(600_000))
    path.write_bytes(b"".join(struct.pack("<IQIq", 7, key + 1, 300, -1) for key in keys))
    options = ("--trace-format", "oracleGeneral", "--policies", "lru", "--memory", "8m..64m")
    command = [binary_path(), "trace", "predict", *options, "--", str(path)]
    # A small process of its own has less memory than the engine, and waits for nothing else.
    played = subprocess.run(
        [sys.executable, "-ISc", _PEAK_KB, *command], capture_output=True, check=True, text=True
    )
    status, peak_kb = map(int, played.stdout.split()[-2:])
    assert status == 0
    # The program's file is 8 MB of it, more or less, as the kernel maps pages around the used ones.
    assert 1000 < peak_kb < 16_000 + 8_000
