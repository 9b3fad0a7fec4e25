"""`cachemark trace show`: on a terminal, as a page, as JSON."""

import json
from pathlib import Path

import pytest

from tests.cli.in_process import Inside
from tests.golden import assert_golden

_GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A minute of traffic that is the same each time: the first of 60 keys are the hottest."""
    lines = ["time,op,key,size,ttl"]
    for number in range(6000):
        key = (number * number + number // 7) % (1 + number % 60)
        op, ttl = ("set", 30 if key % 2 else 0) if number % 10 == 0 else ("get", 0)
        op = "delete" if number % 997 == 0 else op
        size = "" if op == "delete" else str(100 + 37 * key)
        lines.append(f"{number / 100 + (number % 7) / 1000:.3f},{op},user:{key},{size},{ttl}")
    path = tmp_path_factory.mktemp("trace") / "minute.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_screen(inside: Inside, trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    shown = inside("trace", "show", str(trace))
    assert shown.returncode == 0, shown.stderr
    assert_golden("table", shown.stdout, _GOLDEN / "trace_show.txt")


def test_the_figures_are_those_of_the_file(inside: Inside, trace: Path) -> None:
    shown = json.loads(inside("trace", "show", str(trace), "--json").stdout)
    lines = [line.split(",") for line in trace.read_text().splitlines()[1:]]
    statistics = shown["statistics"]
    assert shown["summary"]["records"] == statistics["requests"] == len(lines)
    assert statistics["operations"]["set"] == sum(line[1] == "set" for line in lines)
    assert statistics["keys"]["keys"] == {"value": len({line[2] for line in lines}), "error": 0}
    assert sum(sum(window["operations"].values()) for window in statistics["timeline"]) == 6000


def test_columns_that_are_not_used_are_named(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("timestamp,op,key,size,node\n1,get,a,5,x\n")
    said = inside("trace", "show", str(tmp_path / "a.csv"))
    assert "Columns that are not used: timestamp, node." in said.stdout
    converted = inside("trace", "convert", str(tmp_path / "a.csv"), str(tmp_path / "a.trace"))
    assert "columns that are not used: timestamp, node" in converted.stdout
    again = inside("trace", "show", str(tmp_path / "a.trace"))
    assert "Columns that are not used: timestamp, node." in again.stdout


@pytest.mark.parametrize(
    "words",
    [
        ("predict", "a.csv", "--memory", "2m,64m"),
        ("capacity", "a.csv", "--servers", "fleet.toml"),
        ("trace", "fit", "a.csv", "--out", "like.toml"),
    ],
    ids=("predict", "capacity", "fit"),
)
def test_figures_of_a_trace_name_columns_that_are_not_used(
    inside: Inside, tmp_path: Path, words: tuple[str, ...]
) -> None:
    lines = [f"{at / 100:.2f},get,k{at % 300},5,x" for at in range(3000)]
    (tmp_path / "a.csv").write_text("\n".join(["time,op,key,size,node", *lines]) + "\n")
    server = 'name = "small"\nmemory = "4m"\nrate = 150\nthreads = 2\n'
    (tmp_path / "fleet.toml").write_text(f"hit_ratio = 0.5\n[[server]]\n{server}")
    said = inside(*words)
    assert said.returncode == 0, said.stderr
    assert "Columns that are not used: node." in " ".join(said.stdout.split())


def test_the_page_has_pictures(inside: Inside, trace: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    shown = inside("trace", "show", str(trace), str(page))
    assert shown.returncode == 0, shown.stderr
    text = page.read_text()
    for title in (
        "Requests over time",
        "Popularity of keys",
        "Sizes of keys",
        "New keys",
        "Bursts",
    ):
        assert title in text
    assert text.count("<svg") > 10


def test_a_part_of_the_keys_has_an_error(inside: Inside, trace: Path) -> None:
    shown = inside("trace", "show", str(trace), "--keys", "20")
    assert "chosen by its hash" in shown.stdout
    assert "±" in shown.stdout


def test_what_cannot_be_shown(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("time,op,key\n")
    assert "it has no operations" in inside("trace", "show", str(tmp_path / "empty.csv")).stderr
    for options in (["--anonymous"], ["--sample=1/2"]):
        told = inside("trace", "show", str(tmp_path / "empty.csv"), *options)
        assert told.returncode == 2
        assert "leave them out" in told.stderr
    told = inside("trace", "convert", str(tmp_path / "empty.csv"))
    assert told.returncode == 2
    assert "IN OUT" in told.stderr
