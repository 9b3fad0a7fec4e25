"""Every figure of a report, derived again from the stored lines by a reader that knows no code.

The reader below has the methodology's words only: successful operations, divided by the time that
they took. It imports nothing of `analysis` and `report`, so a wrong divisor there is found here.
"""

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest

from cachemark.model.histogram import Histogram
from cachemark.report.document import Spec
from cachemark.report.html import page
from tests.cli.in_process import Inside
from tests.report.built_once import build_once
from tests.report.histogram_reader import at_percentile, decoded
from tests.report.stored_line import Line, shown

# A burst, then one operation now and then for 1.2 s: most of its operations are in the first 0.1 s.
TRACE = "time,op,key,size\n" + "".join(
    f"{second:.3f},{op},k{key},100\n"
    for key, second in enumerate([0.001 * at for at in range(100)] + [0.6, 1.0, 1.2])
    for op in ("set", "get")
)
# Name → the options of `cachemark run`, beside client, server and a single block.
WORK = {
    "by time": ["--mix", "get=90,set=10", "--keys", "500", "--measure-ms", "700"],
    "by number": ["--mix", "get=50,set=50", "--keys", "500", "--ops", "3000"],
    "a trace, closed": ["--trace", "day.csv", "--set", "loads.schedule=closed"],
    "a trace, replayed": ["--trace", "day.csv", "--set", "loads.schedule=replay:1"],
    "several callers": ["--mix", "get=1", "--keys", "500", "--threads", "3", "--measure-ms", "700"],
    "depth": ["--mix", "get=9,set=1", "--keys", "500", "--depth", "8", "--measure-ms", "700"],
    "a sequence": [
        *["--set", "workloads.sequence=set@0 get@0 mget@0-5"],
        *["--keys", "500", "--measure-ms", "700"],
    ],
    "cas that others disturb": ["--mix", "cas=1", "--keys", "2", "--threads", "8", "--ops", "4000"],
    "cas of keys that others delete": [
        *["--mix", "cas=3,delete=1,set=1", "--keys", "4", "--threads", "8", "--ops", "4000"],
    ],
    "passes": [
        *["--mix", "get=3,set=1", "--keys", "50"],
        *["--set", "workloads.records=700", "--set", "workloads.passes=3"],
    ],
    "batches": [
        "--mix",
        "mget=3,mset=1",
        "--set",
        "workloads.run=7",
        "--keys",
        "90",
        "--ops",
        "900",
    ],
    "no replies": [
        "--mix",
        "get=3,set_noreply=2,delete_noreply=1,touch_noreply=1",
        *["--keys", "90", "--ops", "3000"],
    ],
    "sets that are too large": [
        *["--mix", "get=1,set=1", "--size", "9=9,1200000=1", "--keys", "50", "--ops", "600"],
        *["--set", "workloads.prefill=0"],
    ],
    "reads that fill": [
        "--mix",
        "fetch=1",
        "--keys",
        "900",
        "--set",
        "workloads.prefill=0",
        "--ops",
        "2000",
    ],
    "cas by time": ["--mix", "cas=1,get=1", "--keys", "2", "--threads", "8", "--measure-ms", "700"],
    "add of what is there": ["--mix", "add=1,get=3", "--keys", "50", "--ops", "2000"],
    "misses": [
        *["--mix", "get=1", "--keys", "500", "--measure-ms", "700"],
        *["--set", "workloads.hit_ratio=0.5"],
    ],
    "all verbs": [
        "--mix",
        "get=5,gets=1,set=1,add=1,replace=1,append=1,prepend=1,delete=1,touch=1,gat=1,incr=1,decr=1",
        *["--keys", "300", "--set", "workloads.keys.counters=20", "--ops", "6000"],
    ],
}
ROUNDS = {
    "rounds": ["--mix", "get=9,set=1", "--keys", "500", "--measure-ms", "700"],
    "rounds with cas": ["--mix", "cas=1", "--keys", "2", "--threads", "4", "--measure-ms", "700"],
}


# Settings that no option of `cachemark run` has.
HEAD = """
name = "again"
question = "Is it told as it was stored?"
design = "trials"
blocks = 1
noise = "note"
clients = ["native"]
servers = ["embedded:memory=8"]
[timing]
warmup_ms = 0
measure_ms = 700
timeout_ms = 20000
ready_ms = 60000
silence_ms = 30000
[[workloads]]
name = "work"
"""
FILES = {
    "a fill": f"""{HEAD}
mix = {{ set = 1 }}
keys = {{ count = 20_000, distribution = "sequential" }}
values = {{ size = "1000" }}
records = 20_000
prefill = 0.0
fill_percent = 50.0
[[loads]]
name = "one"
""",
    "evictions": f"""{HEAD}
mix = {{ set = 1 }}
keys = {{ count = 20_000, distribution = "sequential" }}
values = {{ size = "1000" }}
records = 20_000
prefill = 0.0
ops = 20_000
[[loads]]
name = "one"
""",
    "generators": f"""{HEAD}
mix = {{ get = 9, set = 1 }}
keys = {{ count = 500 }}
[[loads]]
name = "one"
schedule = "uniform"
rate = 900
processes = 2
measure = {{ rate = 600 }}
""",
}


def check_times(row: dict[str, str], line: Line, kind: str) -> int:
    """Compare the percentiles of a row; returns how many it shows."""
    times, seen = line.times(kind), 0
    for percent in ("50", "90", "99", "99.9"):
        if text := row[f"response_p{percent}_ns"]:
            assert float(text) == at_percentile(times, percent), (kind, percent)
            seen += 1
        else:
            assert line.may_lack(float(percent), kind, times.total()), (kind, percent)
    if row["response_max_ns"]:
        assert float(row["response_max_ns"]) == max(times)
    return seen


def read_lines(folder: Path) -> list[Line]:
    (path,) = folder.glob("results/*/outcomes.jsonl")
    return [Line(line) for line in path.read_bytes().splitlines()]


@pytest.fixture(autouse=True)
def text_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages without drawings: the figures are in the text."""

    def blank(_plot: Spec) -> str:
        return "<svg/>"

    monkeypatch.setattr(page, "svg", blank)


def form(inside: Inside, name: str) -> str:
    said = inside("report", "--format", name)
    assert said.returncode == 0, said.stderr
    return said.stdout


def check_exports(inside: Inside, of: Line) -> None:
    """Compare what other programs read, a single trial of each cell, with a line."""
    cell = of.raw["trial"]["cell"]
    name = cell["client"].replace("/", ":")
    client, server = of.cpu_us("client"), of.cpu_us("server")
    entries = json.loads(form(inside, "google-benchmark"))["benchmarks"]
    (entry,) = [it for it in entries if it["name"].endswith(f"/{cell['client']}")]
    lines = [it.split() for it in form(inside, "go-bench").splitlines()]
    (words,) = [it for it in lines if f"/client={name}/op=all-" in " ".join(it)]
    go = dict(zip(words[3::2], map(float, words[2::2]), strict=True))
    results = json.loads(form(inside, "hyperfine"))["results"]
    (result,) = [it for it in results if it["parameters"]["client"] == cell["client"]]
    told = {
        "google": (entry.get("cpu_time"), entry.get("server_cpu_ns")),
        "go": (go.get("client-cpu-ns/op"), go.get("server-cpu-ns/op")),
    }
    for form_name, both in told.items():
        for value, again in zip(both, (client, server), strict=True):
            assert (value or 0) / 1e3 == pytest.approx(again or 0, rel=1e-5), form_name
    assert result.get("user", 0) + result.get("system", 0) == pytest.approx((client or 0) / 1e6)
    assert int(words[1]) == entry["iterations"] == of.succeeded()
    each_ns = of.window["elapsed_ns"] / of.succeeded()
    assert result["mean"] * 1e9 == pytest.approx(entry["real_time"]) == pytest.approx(each_ns)
    assert go["ns/op"] == pytest.approx(each_ns, rel=1e-5)
    assert entry["items_per_second"] == pytest.approx(of.rate(), rel=1e-6)


def check_groups(rows: dict[str, dict[str, str]], line: Line) -> None:
    """Compare the row of the sequence's repetitions; without a sequence there is none."""
    groups, names = line.window.get("groups"), [name for name in rows if name.startswith("group")]
    if not groups:
        assert not names
        return
    row = rows[f"group of {groups['length']}"]
    assert int(row["ok"]) == groups["ok"]
    assert float(row["ops_per_s"]) == pytest.approx(line.rate() / groups["length"], rel=1e-5)
    assert float(row["response_p50_ns"]) == at_percentile(decoded(groups["time"]), "50")


def check(inside: Inside, lines: list[Line]) -> None:
    """Compare every form with the lines. A line that is not VALID has no figures."""
    with pytest.MonkeyPatch.context() as patch:
        build_once(patch, {})
        _check_forms(inside, lines)


def check_shares(inside: Inside, line: Line, readable: list[str]) -> None:
    """Compare evictions, and the shares of failed and of refused operations."""
    evicted = shown(line.evictions()) if line.evictions() else "none"
    for text in readable:
        assert f" {evicted}." in text
    if failed := line.count("attempts") - line.count("ok"):
        share = f"({100 * failed / line.count('attempts'):.1f} %)"
        assert all(share in text for text in [*readable, form(inside, "answers")])
    if refused := line.count("not_stored"):
        # In this order: of 4,000 operations, one share in eighteen is rounded otherwise.
        share = f"({100 * (refused / line.count('ok')):.1f} %)"
        assert all(share in text for text in [*readable, form(inside, "answers")])


def _check_forms(inside: Inside, lines: list[Line]) -> None:
    valid = [line for line in lines if line.raw["verdict"] == "VALID"]
    table = list(csv.DictReader(io.StringIO(form(inside, "csv"))))
    rows_of_json = [
        row for group in json.loads(form(inside, "json"))["groups"] for row in group["rows"]
    ]
    for row in table:
        assert not row["operation"].startswith("group") or not row["hits"] + row["misses"], row
    totals = {row["summary"]["cell"]["client"]: row["summary"]["total"] for row in rows_of_json}
    readable = [form(inside, "table"), form(inside, "markdown"), form(inside, "html")]
    clients = {of.raw["trial"]["cell"]["client"]: of for of in valid}
    for line in valid:
        client = line.raw["trial"]["cell"]["client"]
        rows = {row["operation"]: row for row in table if row["client"] == client}
        if client.endswith("#again"):  # the second arm of an A/A test has no row of its own
            continue
        # The rate of a client that is played twice is the geometric mean of both arms.
        scale = math.sqrt(clients.get(f"{client}#again", line).rate() / line.rate())
        check_exports(inside, line)
        for side in ("client", "server"):
            of_side = float(rows["all"][f"{side}_cpu_us_per_op"] or 0)
            assert of_side == pytest.approx(line.cpu_us(side) or 0, abs=1e-3), side
        check_groups(rows, line)
        for kind in [*(line.operations if len(line.operations) > 1 else []), "all"]:
            row = rows[kind]
            assert int(row["ok"]) == line.succeeded(kind), kind
            assert int(row["not_stored"]) == line.count("not_stored", kind), kind
            if row["hits"]:
                assert int(row["hits"]) == line.hits(kind), kind
                assert int(row["misses"]) == line.count("misses", kind), kind
            check_times(row, line, kind)
            rate = scale * line.rate(kind)
            assert float(row["ops_per_s"]) == pytest.approx(rate, rel=1e-5, abs=1e-3)
        assert totals[client]["rate"]["value"] == pytest.approx(scale * line.rate(), rel=1e-6)
        assert totals[client]["ok"] == line.succeeded()
        assert int(rows["all"]["evictions"]) == line.evictions()
        for text in readable:
            assert shown(scale * line.rate()) in text
        check_shares(inside, line, readable)


# One trial of the native client, which counts on a noisy machine too.
TRIAL = (
    *("--client", "native", "--server", "embedded", "--blocks", "1"),
    *("--set", "timing.warmup_ms=0", "--set", "noise=note", "--set", "design=trials"),
)


@pytest.mark.parametrize("work", WORK)
def test_a_trial_is_told_as_it_was_stored(work: str, inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "day.csv").write_text(TRACE)
    ended = inside("run", *TRIAL, *WORK[work])
    assert ended.returncode in (0, 1), ended.stderr
    lines = read_lines(tmp_path)
    assert all(line.succeeded() for line in lines)
    check(inside, lines)


def told_as_valid(folder: Path) -> list[Line]:
    """The stored trials without what noise has done to them: a busy machine has figures too."""
    (path,) = folder.glob("results/*/outcomes.jsonl")
    changed = {"verdict": "VALID", "reasons": [], "findings": [], "withheld": []}
    lines = [{**line.raw, **changed} for line in read_lines(folder)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return read_lines(folder)


@pytest.mark.parametrize("work", FILES)
def test_a_file_is_told_as_it_was_stored(work: str, inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "again.toml").write_text(FILES[work], encoding="utf-8")
    ended = inside("run", "again.toml")
    lines = told_as_valid(tmp_path)
    assert [line.raw["state"] for line in lines] == ["measured"], ended.stderr
    assert (work == "evictions") == (lines[0].evictions() > 0)
    assert (work == "generators") == (lines[0].generated_rate() > 0)
    check(inside, lines)


@pytest.mark.parametrize("work", ROUNDS)
def test_a_sitting_is_told_as_it_was_stored(work: str, inside: Inside, tmp_path: Path) -> None:
    common = ["--client", "native", "--client", "python/pymemcache", "--server", "embedded"]
    short = "--blocks 1 --set timing.warmup_ms=100 --set rounds.until=fixed --set noise=note"
    ended = inside("run", *common, *short.split(), "--set", "design=rounds", *ROUNDS[work])
    assert ended.returncode in (0, 1), ended.stderr
    check(inside, read_lines(tmp_path))


@pytest.mark.parametrize(
    ("work", "wrong"),
    [
        ("a trace, closed", ("kind_rate", lambda *_: 1e6)),
        ("cas that others disturb", ("kind_rate", lambda *_: 1.0)),
    ],
)
def test_a_wrong_divisor_is_found(
    work: str,
    wrong: tuple[str, Any],
    inside: Inside,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "day.csv").write_text(TRACE)
    inside("run", *TRIAL, *WORK[work])
    lines = read_lines(tmp_path)
    assert [line.raw["verdict"] for line in lines] == ["VALID"]
    name, function = wrong
    for room in ("figures", "summary"):
        monkeypatch.setattr(f"cachemark.analysis.statistics.{room}.{name}", function, raising=False)
    with pytest.raises(AssertionError):
        check(inside, lines)


def test_a_wrong_rank_is_found(
    inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "again.toml").write_text(FILES["a fill"], encoding="utf-8")
    inside("run", "again.toml")
    lines = told_as_valid(tmp_path)
    right = Histogram.at_rank

    def too_far(times: Histogram, rank: int) -> int:
        return right(times, min(times.count, 2 * rank))

    monkeypatch.setattr(Histogram, "at_rank", too_far)
    with pytest.raises(AssertionError, match=r"'\w+', '50'"):
        check(inside, lines)
