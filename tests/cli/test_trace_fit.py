"""`cachemark trace fit`: an experiment that is like a trace, and what cannot be fitted."""

import json
import random
import re
import tomllib
from pathlib import Path

import pytest

from tests.cli.in_process import Inside


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five seconds of gets, three in four of them of the first 200 of 2,000 keys, and some sets."""
    drawn = random.Random(3)
    lines = ["time,op,key,size,ttl"]
    at_s = 0.0
    for _ in range(10_000):
        at_s += drawn.expovariate(2000)
        key = drawn.randrange(200 if drawn.random() < 0.75 else 2000)
        op, ttl = ("set", 60) if drawn.random() < 0.1 else ("get", "")
        lines.append(f"{at_s:.6f},{op},customer:{key},{64 if key % 4 else 900},{ttl}")
    path = tmp_path_factory.mktemp("trace") / "day.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_experiment_can_be_played_and_has_no_key(
    inside: Inside, trace: Path, tmp_path: Path
) -> None:
    out = tmp_path / "like.toml"
    told = inside("trace", "fit", str(trace), "--out", str(out))
    assert told.returncode == 0, told.stderr
    assert "How far it is from the trace" in told.stdout
    # Its law may have hundreds of parameters, which are in the file.
    assert re.search(r", with [a-z]+ over [0-9]+ keys", " ".join(told.stdout.split()))
    text = out.read_text()
    assert "customer" not in text
    written = tomllib.loads(text)
    [workload], [load] = written["workloads"], written["loads"]
    assert workload["values"]["size"].startswith("64=0.7")
    # A read stores what it does not find, and a set behind a read may be its fill.
    assert workload["mix"]["fetch"] == pytest.approx(0.977, abs=0.005)
    assert load["rate"] == pytest.approx(1850, rel=0.05)
    planned = inside("run", str(out), "--dry-run")
    assert planned.returncode == 0, planned.stderr
    assert "like-the-trace" in planned.stdout


def test_the_distances_are_told_with_their_limits(
    inside: Inside, trace: Path, tmp_path: Path
) -> None:
    told = inside("trace", "fit", str(trace), str(tmp_path / "t.toml"), "--json")
    assert told.returncode == 0, told.stderr
    distances = {each["of"]: each for each in json.loads(told.stdout)["fit"]["distances"]}
    assert distances["gaps between requests"]["value"] < 0.05
    assert distances["hit ratio, LRU"]["limit"] == 0.02
    assert all(each["reason"] is None for each in distances.values())


@pytest.mark.parametrize(
    ("lines", "options", "said"),
    [
        ("", [], "it has no operations"),
        ("0,get,a,\n", [], "no operation has a size"),
        ("0,set,a,9\n", [], "nothing can hit or miss"),
        ("0,get,a,9\n", ["--sample", "1/2"], "leave them out"),
        ("0,get,a,9\n", ["--keys", "5"], "it is for `trace show`"),
    ],
)
def test_what_cannot_be_fitted(
    inside: Inside, tmp_path: Path, lines: str, options: list[str], said: str
) -> None:
    (tmp_path / "t.csv").write_text("time,op,key,size\n" + lines)
    told = inside("trace", "fit", "t.csv", "like.toml", *options)
    assert told.returncode == 2
    assert said in " ".join(told.stderr.split())
    assert not (tmp_path / "like.toml").exists()


def test_a_trace_of_some_keys_is_refused(inside: Inside, trace: Path) -> None:
    assert inside("trace", "convert", str(trace), "t.trace", "--sample", "1/4").returncode == 0
    told = inside("trace", "fit", "t.trace", "like.toml")
    assert told.returncode == 2
    assert "one key of 4" in told.stderr
