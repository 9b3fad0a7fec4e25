"""Pages and tables that are printed from the code; the examples of experiments can be played."""

from pathlib import Path

import pytest

from cachemark.analysis.resilience.verdict import CRASH, RULES
from cachemark.model.faults import all_faults
from tests.builders.small_experiments import read_outcomes
from tests.cli.in_process import Inside
from tools.printed_docs import EXAMPLES, example_files, printed, with_tables

QUICK = ("--blocks", "1", "--set", "design=trials", "--set", "timing.warmup_ms=20")


def test_pages_are_those_of_the_code() -> None:
    for page, text in printed().items():
        assert page.read_text(encoding="utf-8") == text, "run `make docs`"


def test_each_fault_and_rule_is_printed() -> None:
    marks = "<!-- printed: {} -->\nstale\n<!-- end -->\n"
    faults, rules = (with_tables(marks.format(name)).splitlines() for name in ("faults", "rules"))
    named = [line.split("`")[1] for line in faults if line.startswith("- `")]
    assert named == list(all_faults())
    named = [line[2:].partition(":")[0] for line in rules if line.startswith("- ")]
    assert named == [rule.name for rule in (CRASH, *RULES)]


def test_there_are_six_examples() -> None:
    assert len(example_files()) == 6


@pytest.mark.parametrize("example", example_files(), ids=lambda path: path.stem)
def test_each_example_is_played(inside: Inside, tmp_path: Path, example: Path) -> None:
    # A trace ends by itself.
    window = () if example.stem == "trace" else ("--measure-ms", "100")
    ended = inside("run", str(example), *QUICK, *window)
    # An open loop may be late on a busy machine, and its trial is INVALID then.
    assert ended.returncode in (0, 1), ended.stderr
    assert {outcome.state for outcome in read_outcomes(tmp_path)} == {"measured"}, ended.stderr


FURTHER = pytest.mark.slow("plays the swaps of a further language")


@pytest.mark.parametrize(
    "client", ["native", "python/pymemcache", pytest.param("go/gomemcache", marks=FURTHER)]
)
def test_the_server_counts_the_swaps_that_callers_lose(
    inside: Inside, tmp_path: Path, client: str
) -> None:
    example = EXAMPLES / "cas-conflicts.toml"
    # A trial of many operations on one key: callers meet, however the machine schedules them.
    length = ["--keys", "1", "--ops", "4000", "--blocks", "1", "--set", "design=trials"]
    ended = inside("run", str(example), "--client", client, *length)
    assert ended.returncode == 0, ended.stderr
    lost: dict[int, int] = {}
    for outcome in read_outcomes(tmp_path):
        assert outcome.measure is not None
        swaps = outcome.measure.operations["cas"]
        before, after = outcome.stats_before, outcome.stats_after
        assert int(after["cas_badval"]) - int(before["cas_badval"]) == swaps.not_stored
        assert int(after["cas_hits"]) - int(before["cas_hits"]) == swaps.hits - swaps.not_stored
        lost[outcome.load.threads] = swaps.not_stored
    assert lost[1] == 0
    assert lost[4] > 0
    assert "refused" in ended.stdout or "refused" in inside("report").stdout
