"""Presets: each becomes settings of an experiment, and the engine accepts them."""

import subprocess
from pathlib import Path

import msgspec
import pytest

from cachemark.host.process import binary_path
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Experiment, Load, Timing, Workload
from cachemark.model.experiment_file import parse
from cachemark.model.presets import expand, load_presets
from cachemark.runs.tapes import tape_arguments

ENGINE = binary_path()
PRESETS = load_presets(ENGINE)


def experiment(workload: str, load: str = "") -> Experiment:
    text = f"""name = "x"
question = "q"
clients = ["native"]
servers = ["embedded"]
[[workloads]]
name = "w"
{workload}
[[loads]]
name = "l"
{load}
"""
    return expand(parse(text, "f.toml"), ENGINE)


def write_tape(workload: Workload, load: Load, folder: Path) -> subprocess.CompletedProcess[str]:
    options = tape_arguments(workload, load, Timing(measure_ms=100), 1)
    command = [ENGINE, "tape", "write", "--out", str(folder / "tape"), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_preset_gives_experiment_and_engine_the_same_tape(name: str, tmp_path: Path) -> None:
    expanded = experiment(f'preset = "{name}"\nrecords = 1000\n[workloads.keys]\ncount = 5000')
    ended = write_tape(expanded.workloads[0], expanded.loads[0], tmp_path)
    assert ended.returncode == 0, ended.stderr
    by_experiment = (tmp_path / "tape").read_bytes()
    options = ["--preset", name, "--keys", "5000", "--ops", "1000", "--out", str(tmp_path / "tape")]
    subprocess.run([ENGINE, "tape", "write", *options], check=True, stdout=subprocess.DEVNULL)
    assert (tmp_path / "tape").read_bytes() == by_experiment


def test_settings_of_the_experiment_override_the_preset() -> None:
    expanded = experiment(
        'preset = "etc"\nmix = { set = 1 }\nprefill = 0.5\nvalues = { size = "9" }'
    )
    workload = expanded.workloads[0]
    assert (workload.mix, workload.prefill, workload.hit_ratio) == ({"set": 1.0}, 0.5, None)
    assert (workload.values.size, workload.keys.length[:4]) == ("9", "gev:")
    named = experiment('preset = "ycsb-a"\nkeys = { length = "30" }').workloads[0]
    assert (named.keys.length, named.keys.pattern) == ("30", None)


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(UsageError, match="no preset 'ycsb-e'"):
        experiment('preset = "ycsb-e"')


@pytest.mark.parametrize(
    ("workload", "load"),
    [
        ('mix = { get = 1 }\nkeys = { distribution = "hotspot:0.2:0.8" }', ""),
        ('mix = { get = 1 }\nkeys = { distribution = "latest" }', 'think = "exp:1ms"'),
        ('mix = { get = 1 }\nkeys = { distribution = "gaussian:0.1" }', 'think = "500us"'),
        ('mix = { fetch = 1 }\nexptime_s = "10m..1h"', 'schedule = "gpareto:0.15"\nrate = 9000'),
        ("mix = { get = 1 }\nhit_ratio = 0.9", 'schedule = "bursts:5:0.1:1ms"\nrate = 9000'),
        ('mix = { set = 1 }\nvalues = { size = "64=3,lognormal:300:1=1" }', ""),
    ],
)
def test_every_distribution_can_be_named_in_an_experiment(
    workload: str, load: str, tmp_path: Path
) -> None:
    expanded = experiment(workload, load)
    ended = write_tape(expanded.workloads[0], expanded.loads[0], tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert msgspec.json.decode(ended.stdout)["ops"] > 0


@pytest.mark.parametrize(
    ("workload", "load", "says"),
    [
        ("mix = { get = 1 }\nhit_ratio = 0.9\nprefill = 0.5", "", "remove prefill"),
        ("mix = { get = 1 }", 'schedule = "poisson"\nrate = 9\nthink = "1ms"', "remove think"),
        ("mix = { get = 1 }", 'schedule = "bursts"\nrate = 9', "loads[0].schedule"),
        ("", "", "it needs a mix, a sequence, a preset or a trace"),
    ],
)
def test_contradictory_settings_are_one_clear_error(workload: str, load: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        experiment(workload, load)
    assert says in str(refused.value)
