"""Workers that lie about their own times, played by `cachemark run`, and an honest one."""

import shlex
import shutil
import sys
from pathlib import Path

import pytest

from cachemark.analysis.statistics import window_rate
from cachemark.host import process
from cachemark.model.outcome import Outcome
from tests.builders.small_experiments import PATIENT, ROUNDS, TRIALS, read_outcomes, write
from tests.cli.in_process import Inside
from tests.conftest import ROOT

WORKER = [sys.executable, str(ROOT / "tests/runs/trials/lying_worker.py")]
OWN_TIMES = {"own-clock", "own-cpu", "own-counts", "own-times"}
# Of so much CPU time a tenth is less than is tolerated, and of so long a window a third.
ENOUGH_CPU_NS = ENOUGH_NS = 300_000_000


def play(inside: Inside, folder: Path, lie: str, *options: str) -> Outcome:
    command = shlex.join([*WORKER, lie, process.binary_path(), "worker", "network"])
    text = TRIALS.replace(*PATIENT).replace("blocks = 2", 'blocks = 1\nnoise = "note"')
    name = write(folder, text)
    ended = inside("run", name, "--client", f"command:{command}", *options)
    (played,) = read_outcomes(folder)
    assert played.state == "measured", ended.stderr
    return played


@pytest.mark.parametrize(
    ("lie", "options", "rules"),
    [
        ("clock", ("--measure-ms", "200"), {"own-clock"}),
        # A window too short to be seen from outside: its calls are longer than it.
        ("clock", ("--ops", "500"), {"own-clock"}),
        ("times", ("--ops", "500"), {"own-times"}),
        ("calls", ("--ops", "500"), {"own-times"}),
        ("honest", ("--measure-ms", "2500"), set[str]()),
        ("honest", ("--ops", "3000"), set[str]()),
    ],
)
def test_a_lie_about_a_window_is_found(
    inside: Inside, tmp_path: Path, lie: str, options: tuple[str, ...], rules: set[str]
) -> None:
    played = play(inside, tmp_path, lie, *options)
    assert {found.rule for found in played.findings} & OWN_TIMES == rules
    assert played.verdict == ("INVALID" if rules else "VALID"), played.findings


def test_a_window_before_whose_end_nothing_succeeded_is_invalid(
    inside: Inside, tmp_path: Path
) -> None:
    played = play(inside, tmp_path, "late", "--measure-ms", "200")
    assert window_rate(played) == 0
    assert played.verdict == "INVALID"
    assert "no operation succeeded before the end of the window" in played.reasons


def test_a_client_that_divides_all_of_its_times_is_found(inside: Inside, tmp_path: Path) -> None:
    """A fast machine shows little of few operations: there are more until that is enough."""
    for ops in (4000, 40_000, 400_000):
        played = play(inside, tmp_path, "scaled", "--ops", str(ops))
        assert played.measure
        if 3 * played.measure.elapsed_ns >= ENOUGH_NS:
            break
        shutil.rmtree(tmp_path / "results")
    assert {found.rule for found in played.findings} & OWN_TIMES >= {"own-clock"}
    assert played.verdict == "INVALID"


def test_a_client_that_divides_all_times_of_slices_is_found(inside: Inside, tmp_path: Path) -> None:
    assert rules_in_turns(inside, tmp_path, "scaled") >= {"own-clock"}


def test_half_of_the_operations_told_twice_is_found(inside: Inside, tmp_path: Path) -> None:
    played = play(inside, tmp_path, "half", "--ops", "3000")
    texts = [found.text for found in played.findings if found.weight == "INVALID"]
    assert any("cmd_get rose by" in text for text in texts), played.findings
    assert not {found.rule for found in played.findings} & OWN_TIMES


def test_half_of_the_operations_told_twice_is_found_in_slices(
    inside: Inside, tmp_path: Path
) -> None:
    assert rules_in_turns(inside, tmp_path, "half") >= {"server-counters"}


def rules_in_turns(inside: Inside, folder: Path, lie: str) -> set[str]:
    """The rules that a client breaks which plays in turns with an honest one, which breaks none.

    On a busy machine, few operations are in a slice: slices become longer until they show it.
    """
    command = shlex.join([*WORKER, lie, process.binary_path(), "worker", "network"])
    rules: set[str] = set()
    for slice_ms in (20, 100, 500):
        shutil.rmtree(folder / "results", ignore_errors=True)
        text = ROUNDS.replace('twice = "native"\n', "")
        name = write(
            folder, text, blocks="1", slice_ms=f"{slice_ms}", measure_ms=f"{12 * slice_ms}"
        )
        inside("run", name, "--client", "native", "--client", f"command:{command}")
        found = {
            played.trial.cell.client: {
                found.rule for found in played.findings if found.weight == "INVALID"
            }
            for played in read_outcomes(folder)
        }
        assert not found["native"] & (OWN_TIMES | {"server-counters"})
        rules = found[f"command:{command}"] & (OWN_TIMES | {"server-counters"})
        if rules:
            break
    return rules


def test_slices_that_tell_more_than_their_sum_are_found(inside: Inside, tmp_path: Path) -> None:
    assert rules_in_turns(inside, tmp_path, "counts") >= {"own-counts"}


def test_a_client_that_claims_more_bytes_is_found(inside: Inside, tmp_path: Path) -> None:
    played = play(inside, tmp_path, "bytes", "--ops", "3000")
    texts = [found.text for found in played.findings if found.rule == "server-bytes"]
    assert any("bytes_written rose by" in text for text in texts), played.findings
    assert played.verdict == "INVALID"


def test_a_lie_about_cpu_time_is_found_from_outside(inside: Inside, tmp_path: Path) -> None:
    """A busy machine shows little of a short window: it becomes longer until that is enough."""
    for measure_ms in (700, 2000, 6000, 18000):
        played = play(inside, tmp_path, "cpu", "--measure-ms", str(measure_ms))
        if played.measure and 10 * played.measure.cpu_user_ns >= ENOUGH_CPU_NS:
            break
        shutil.rmtree(tmp_path / "results")
    assert {found.rule for found in played.findings} & OWN_TIMES == {"own-cpu"}
    assert played.verdict == "INVALID"
