"""Facts of the host, read from made trees of files."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachemark.host import process
from cachemark.host.facts import facts
from cachemark.host.noise import CpuTimes, NoiseMonitor, cpu_times, foreign_percent, steal_percent
from cachemark.host.placement import cores, placement, usable_cpus
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Placement
from cachemark.model.run_header import HostFacts

TICKS_HZ = os.sysconf("SC_CLK_TCK")


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


MACHINE = {
    "proc/cpuinfo": "processor\t: 0\nmodel name\t: Example CPU\nflags\t\t: fpu tsc hypervisor\n",
    "proc/meminfo": "MemTotal:  2048 kB\nSwapTotal:  100 kB\nSwapFree:   40 kB\n",
    "etc/os-release": 'NAME="Example"\nPRETTY_NAME="Example Linux 1"\n',
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
    "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "1\n",
    "sys/devices/system/cpu/vulnerabilities/meltdown": "Mitigation: PTI\n",
    "sys/devices/system/cpu/vulnerabilities/l1tf": "Not affected\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet\n",
}


def test_facts_of_a_machine(tmp_path: Path) -> None:
    found = facts(tree(tmp_path, MACHINE))
    assert found.cpu_model == "Example CPU"
    assert found.hypervisor
    assert found.memory_bytes == 2048 * 1024
    assert found.swap_used_bytes == 60 * 1024
    assert found.system == "Example Linux 1"
    assert found.governor == "performance,powersave"
    assert found.turbo == "off"
    assert found.clocksource == "hpet"
    assert found.mitigations == {"meltdown": "Mitigation: PTI"}
    assert found.engine.startswith("cachemark-engine ")


def test_facts_without_readable_files(tmp_path: Path) -> None:
    found = facts(tmp_path)
    values = (found.cpu_model, found.system, found.governor, found.turbo, found.clocksource)
    assert values == ("",) * 5
    assert (found.memory_bytes, found.swap_used_bytes, found.hypervisor) == (0, 0, False)
    assert found.cores == [[cpu] for cpu in found.usable_cpus]


def test_facts_survive_json() -> None:
    found = facts()
    assert msgspec.json.decode(msgspec.json.encode(found), type=HostFacts) == found
    assert found.cpus >= len(found.usable_cpus) >= 1


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"intel_pstate/no_turbo": "0"}, "on"),
        ({"cpufreq/boost": "1"}, "on"),
        ({"cpufreq/boost": "0"}, "off"),
        ({"cpufreq/boost": "what?"}, ""),
    ],
)
def test_turbo_is_read_from_either_driver(tmp_path: Path, files: dict[str, str], says: str) -> None:
    folder = "sys/devices/system/cpu"
    assert (
        facts(tree(tmp_path, {f"{folder}/{name}": text for name, text in files.items()})).turbo
        == says
    )


def threads(root: Path, lists: dict[int, str]) -> Path:
    folder = "sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
    return tree(root, {folder.format(cpu): text for cpu, text in lists.items()})


def test_cores_group_the_threads_that_are_usable(tmp_path: Path) -> None:
    root = threads(tmp_path, {0: "0,4\n", 4: "0,4\n", 1: "1,5\n", 5: "1,5\n", 2: "2,6", 3: "bad"})
    assert cores([0, 1, 2, 3, 4, 5], root) == [[0, 4], [1, 5], [2], [3]]


@pytest.mark.parametrize(
    ("wanted", "usable", "groups", "server", "worker"),
    [
        (Placement(), [0, 1], None, "0", "1"),
        (Placement(), [0, 1, 2], None, "0", "1,2"),
        (Placement(), [3], None, "", ""),
        (Placement(), [0, 1, 2, 3], [[0, 2], [1, 3]], "0,2", "1,3"),
        (Placement(), [0, 1], [[0, 1]], "0", "1"),
        (Placement(server="none", worker="none"), [0, 1], None, "", ""),
        (Placement(server="none"), [0, 1], None, "", "1"),
        (Placement(server="1"), [0, 1, 2], None, "1", "0,2"),
        (Placement(worker="0"), [0, 1, 2], None, "1,2", "0"),
        (Placement(server="0-1"), [0, 1], None, "0,1", ""),
        (Placement(server="0", worker="0"), [0, 1], None, "0", "0"),
        (Placement(server="2-3", worker="0,1"), [0, 1, 2, 3], None, "2,3", "0,1"),
    ],
)
def test_placement_of_server_and_worker(
    wanted: Placement, usable: list[int], groups: list[list[int]] | None, server: str, worker: str
) -> None:
    assert placement(wanted, usable, groups) == (server, worker)


@pytest.mark.parametrize("wanted", [Placement(server="7"), Placement(worker="0-7")])
def test_placement_on_an_unusable_cpu_is_refused(wanted: Placement) -> None:
    with pytest.raises(UsageError, match="cannot be used here") as caught:
        placement(wanted, [0, 1])
    assert caught.value.remedy == "usable CPUs: 0,1"


def test_placement_on_a_malformed_set_is_refused() -> None:
    with pytest.raises(UsageError, match="not a set of CPUs"):
        placement(Placement(server="3-1"), [0, 1, 2, 3])


@given(st.sets(st.integers(0, 63), min_size=2, max_size=16), st.integers(1, 4))
def test_automatic_placement_gives_each_cpu_to_one_side(cpus: set[int], size: int) -> None:
    usable = sorted(cpus)
    groups = [usable[at : at + size] for at in range(0, len(usable), size)]
    sides = [process.parse_cpus(side) for side in placement(Placement(), usable, groups)]
    assert sides[0] | sides[1] == cpus
    assert not sides[0] & sides[1]
    if len(groups) > 1:
        assert all(set(group) <= sides[0] or set(group) <= sides[1] for group in groups)


def stat(**ticks: int) -> dict[str, str]:
    names = CpuTimes.__struct_fields__
    words = " ".join(str(ticks.get(name, 0)) for name in names)
    return {"proc/stat": f"cpu  {words} 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n"}


def test_cpu_times_of_this_machine_grow() -> None:
    first = cpu_times()
    second = cpu_times()
    assert first is not None
    assert second is not None
    assert second.total >= first.total > 0


@pytest.mark.parametrize("text", ["", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8", "cpu a b c d e f g h"])
def test_malformed_cpu_times_are_none(tmp_path: Path, text: str) -> None:
    assert cpu_times(tree(tmp_path, {"proc/stat": text})) is None


def test_steal_and_foreign_time_in_percent() -> None:
    window = CpuTimes(user=30, nice=0, system=20, idle=30, iowait=10, irq=2, softirq=3, steal=5)
    assert steal_percent(window) == 5.0
    assert foreign_percent(window, 40, interrupts_charged=False) == 10.0
    assert foreign_percent(window, 40, interrupts_charged=True) == 15.0
    assert foreign_percent(window, 90, interrupts_charged=True) == 0.0
    empty = window.since(window)
    assert steal_percent(empty) is None
    assert foreign_percent(empty, 0, interrupts_charged=True) is None


def test_noise_is_foreign_cpu_time_and_steal(tmp_path: Path) -> None:
    monitor = NoiseMonitor(tree(tmp_path, {**stat(user=1000, idle=1000), "proc/pressure/irq": ""}))
    monitor.start([], [])
    tree(tmp_path, stat(user=1000 + 50_000, idle=1000 + 40_000, steal=10_000))
    noise = monitor.stop()
    assert noise.steal_percent == 10.0
    # Our own few ticks since the start are taken off the half that was busy.
    assert noise.foreign_cpu_percent is not None
    assert 45.0 < noise.foreign_cpu_percent <= 50.0


def test_our_own_processes_are_not_noise(tmp_path: Path) -> None:
    code = (
        "import time\ninput()\nwhile time.process_time() < 0.3: pass\nprint(1, flush=True)\ninput()"
    )
    pipe = subprocess.PIPE
    root = tree(tmp_path, {**stat(), "proc/pressure/irq": ""})
    with process.start([sys.executable, "-c", code], stdin=pipe, stdout=pipe) as child:
        assert child.popen.stdin is not None
        assert child.popen.stdout is not None
        with_child, without = NoiseMonitor(root), NoiseMonitor(root)
        with_child.start([child.pid], [])
        without.start([], [])
        child.popen.stdin.write(b"\n")
        child.popen.stdin.flush()
        assert child.popen.stdout.readline() == b"1\n"
        tree(tmp_path, stat(user=TICKS_HZ, idle=TICKS_HZ))
        values = [monitor.stop().foreign_cpu_percent for monitor in (with_child, without)]
    assert values[0] is not None
    assert values[1] is not None
    # It used at least 0.25 s of the window's 2 s after the start.
    assert values[1] - values[0] > 5


def test_noise_is_none_where_it_cannot_be_read(tmp_path: Path) -> None:
    monitor = NoiseMonitor(tmp_path)
    monitor.start([], [])
    unreadable = monitor.stop()
    assert (unreadable.steal_percent, unreadable.foreign_cpu_percent) == (None, None)

    tree(tmp_path, stat())
    with process.start([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        monitor.start([child.pid], [])
    tree(tmp_path, stat(user=90, steal=10))
    without_child = monitor.stop()
    assert (without_child.steal_percent, without_child.foreign_cpu_percent) == (10.0, None)


def test_usable_cpus_are_those_of_the_affinity_mask() -> None:
    assert usable_cpus() == sorted(os.sched_getaffinity(0))
