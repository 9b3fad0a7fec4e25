"""Counters of the kernel, read from made trees of files; missing files give no counters."""

from pathlib import Path

import pytest

from cachemark.checks.doctor import kernel, network
from cachemark.host.counters import counters, cpu_frequencies_mhz, increases, run_and_wait_ns
from cachemark.host.noise import NoiseMonitor, Pauses
from cachemark.model.machine_limits import Check
from tests.checks.test_doctor import tree

CPU = "sys/devices/system/cpu"
FILES = {
    "proc/pressure/cpu": "some avg10=1.00 avg60=1.00 avg300=1.00 total=1234\nfull total=9\n",
    "proc/pressure/memory": "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n",
    "proc/vmstat": "nr_free_pages 7\npswpin 3\npgmajfault 11\noom_kill 1\n",
    "proc/interrupts": " CPU0 CPU1\nMCE: 2 1 Machine check exceptions\nMCP: 9 9 polls\n",
    "proc/net/snmp": "Tcp: InSegs OutSegs RetransSegs\nTcp: 9 1000 2\nUdp: InDatagrams\nUdp: 1\n",
    "proc/net/netstat": "TcpExt: ListenOverflows ListenDrops\nTcpExt: 1 4\n",
    "proc/net/softnet_stat": "000a 00000001 0\n000b 0000000f 0\n",
    f"{CPU}/cpu0/thermal_throttle/core_throttle_count": "6",
    f"{CPU}/cpu0/cpufreq/scaling_cur_freq": "2000000",
    f"{CPU}/cpu1/cpufreq/scaling_cur_freq": "2500000",
    "proc/self/cgroup": "0::/a\n",
    "sys/fs/cgroup/a/cpu.stat": "usage_usec 1\nnr_throttled 8\n",
    "proc/7/task/7/schedstat": "1000 50 3\n",
    "proc/7/task/8/schedstat": "500 25 3\n",
}


def test_every_counter_is_read_from_its_file(tmp_path: Path) -> None:
    assert counters(tree(tmp_path, FILES)) == {
        "cpu_pressure_us": 1234,
        "memory_pressure_us": 5,
        "swapped_in": 3,
        "major_faults": 11,
        "segments_sent": 1000,
        "retransmits": 2,
        "accept_drops": 5,
        "packet_drops": 16,
        "too_hot": 6,
        "oom_kills": 1,
        "machine_checks": 3,
        "throttled": 8,
    }
    assert sorted(cpu_frequencies_mhz(tmp_path)) == [2000, 2500]
    assert run_and_wait_ns([7], tmp_path) == (1500, 75)


def test_missing_files_give_no_counters(tmp_path: Path) -> None:
    assert (counters(tmp_path), cpu_frequencies_mhz(tmp_path)) == ({}, [])
    assert run_and_wait_ns([7], tmp_path) is None


def test_a_sleeping_cpu_has_no_frequency(tmp_path: Path) -> None:
    """Its frequency of 0 would be taken for the lowest one."""
    cpus = "sys/devices/system/cpu"
    speeds = {"cpu0": "2000000\n", "cpu1": "0\n"}
    files = {f"{cpus}/{cpu}/cpufreq/scaling_cur_freq": text for cpu, text in speeds.items()}
    assert cpu_frequencies_mhz(tree(tmp_path, files)) == [2000]


def test_increases_are_of_counters_in_both_readings() -> None:
    before = {"retransmits": 2, "throttled": 1}
    assert increases(before, {"retransmits": 5, "swapped_in": 1}) == {"retransmits": 3}


def test_the_noise_monitor_counts_within_its_window(tmp_path: Path) -> None:
    monitor = NoiseMonitor(tree(tmp_path, FILES))
    monitor.start([], [])
    monitor.sample_frequencies()
    tree(tmp_path, {"proc/vmstat": "pswpin 5\npgmajfault 11\n"})
    noise = monitor.stop()
    assert noise.counters["swapped_in"] == 2
    assert noise.counters["retransmits"] == 0
    assert noise.mhz == (2000, 2500)
    assert noise.window_ns > 0
    assert noise.clock_step_ns is not None


def test_short_overshoots_are_no_pauses() -> None:
    pauses = Pauses()
    pauses.slept(10**8, 10**8 + 900_000)
    assert (pauses.longest_ns, pauses.paused_ns) == (900_000, 0)
    pauses.slept(10**8, 10**8 + 3_000_000)
    assert (pauses.longest_ns, pauses.paused_ns) == (3_000_000, 3_000_000)


SYSCTL = "proc/sys/net"
JUDGED = [
    (f"{CPU}/cpu0/cpuidle/state2/latency", "133", "deepest idle state", "warn"),
    (f"{CPU}/cpu0/cpuidle/state1/latency", "2", "deepest idle state", "ok"),
    ("sys/class/thermal/thermal_zone0/temp", "81000", "hottest sensor", "warn"),
    ("sys/class/thermal/thermal_zone0/temp", "96000", "hottest sensor", "fail"),
    (f"{CPU}/cpu0/thermal_throttle/core_throttle_count", "1", "throttled by heat", "warn"),
    (f"{CPU}/cpu0/thermal_throttle/core_throttle_count", "0", "throttled by heat", "ok"),
    ("sys/devices/system/node/node0/cpulist", "0", "memory nodes", "ok"),
    ("proc/stat", "procs_running 4\n", "runnable threads", "warn"),
    ("proc/stat", "procs_running 3\n", "runnable threads", "ok"),
    ("proc/9/comm", "irqbalance", "irqbalance", "warn"),
    ("proc/9/comm", "docker-proxy", "docker-proxy", "warn"),
    ("sys/kernel/tracing/current_tracer", "function", "tracer", "warn"),
    ("sys/class/power_supply/AC/online", "0", "power", "warn"),
    (f"{SYSCTL}/ipv4/ip_local_port_range", "32768 40000", "local ports", "warn"),
    (f"{SYSCTL}/ipv4/ip_local_port_range", "32768 60999", "local ports", "ok"),
    (f"{SYSCTL}/core/somaxconn", "128", "accept queue", "warn"),
    (f"{SYSCTL}/netfilter/nf_conntrack_count", "12", "connection tracking", "warn"),
    (f"{SYSCTL}/netfilter/nf_conntrack_count", "0", "connection tracking", "ok"),
    (
        "proc/net/snmp",
        "Tcp: OutSegs RetransSegs\nTcp: 1000 1\n",
        "TCP retransmits",
        "warn",
    ),
    ("proc/net/softnet_stat", "1 2 3\n", "packets dropped", "warn"),
]


@pytest.mark.parametrize(("file", "text", "name", "status"), JUDGED)
def test_each_check_of_kernel_and_network(
    tmp_path: Path, file: str, text: str, name: str, status: str
) -> None:
    root = tree(tmp_path, {file: text})
    checks: list[Check] = [
        *kernel.speed(root),
        *kernel.numa(root),
        *kernel.background_activity(root, 2),
        *kernel.power(root),
        *network.network(root),
    ]
    (found,) = [check for check in checks if check.name == name]
    assert found.status == status, found
    assert bool(found.remedy) == (status != "ok")
