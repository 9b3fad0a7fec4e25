"""The kernel's log: each pattern, in the ring buffer and in copies of the log."""

import os
import threading
from pathlib import Path

import pytest

from cachemark.checks.doctor.kernel import kernel_message_checks
from cachemark.host.kernel_log import KernelLogTail, read_kernel_log
from cachemark.host.noise import NoiseMonitor
from tests.checks.test_doctor import by_name, tree

# Lines as kernels write them, and which check must find each.
KERNEL_PATTERNS = [
    ("mce: [Hardware Error]: CPU 1: Machine Check: 0 Bank 5: be0000", "machine checks", "fail"),
    ("mce: [Hardware Error]: Machine check events logged", "machine checks", "fail"),
    ("EDAC MC0: 1 CE memory read error on CPU_SrcID#0", "machine checks", "fail"),
    ("Out of memory: Killed process 77 (memcached) total-vm:1kB", "out of memory", "warn"),
    ("Memory cgroup out of memory: Killed process 9 (java)", "out of memory", "warn"),
    ("CPU2: Core temperature above threshold, cpu clock throttled", "throttled by heat", "warn"),
    ("watchdog: BUG: soft lockup - CPU#0 stuck for 22s!", "stalls", "warn"),
    ("rcu: INFO: rcu_sched self-detected stall on CPU", "stalls", "warn"),
    ("INFO: task jbd2:1 blocked for more than 120 seconds.", "stalls", "warn"),
    ("clocksource: timekeeping watchdog: Marking clocksource 'tsc' as unstable", "clock trouble",
     "warn"),
    ("e1000e 0000:00:19.0 eth0: NIC Link is Down", "lost links and I/O errors", "warn"),
    ("nf_conntrack: nf_conntrack: table full, dropping packet", "connections refused", "warn"),
    ("TCP: request_sock_TCP: Possible SYN flooding on port 11211. Sending cookies.",
     "connections refused", "warn"),
    ("TCP: out of memory -- consider tuning tcp_mem", "connections refused", "warn"),
    ("blk_update_request: I/O error, dev sda, sector 1", "lost links and I/O errors", "warn"),
]  # fmt: skip
HARMLESS = [
    "mce: CPU0: supports 32 MCE banks",
    "clocksource: Switched to clocksource tsc",
    "CPU0: Thermal monitoring enabled (TM1)",
    "Memory: 8000000K/8388608K available",
    "rcu: Hierarchical RCU implementation.",
]


@pytest.mark.parametrize(("line", "name", "status"), KERNEL_PATTERNS)
@pytest.mark.parametrize("file", ["dev/kmsg", "var/log/dmesg", "var/log/kern.log"])
def test_each_complaint(tmp_path: Path, file: str, line: str, name: str, status: str) -> None:
    text = "\n".join(f"6,{n},1,-;{each}" for n, each in enumerate([*HARMLESS, line, line]))
    checks = by_name(kernel_message_checks(tree(tmp_path, {file: text + "\n"})))
    found = checks.pop(f"kernel log: {name}")
    assert found.status == status
    assert found.value.startswith("2 since boot, the last: ")
    assert line[:40] in found.value
    assert found.remedy
    # Each line is of one kind alone.
    assert {check.status for check in checks.values()} == {"ok"}


def test_a_log_without_complaints_is_fine(tmp_path: Path) -> None:
    checks = kernel_message_checks(tree(tmp_path, {"dev/kmsg": "\n".join(HARMLESS)}))
    assert {check.value for check in checks} == {"none since boot"}
    assert {check.status for check in checks} == {"ok"}


def test_a_log_that_may_not_be_read_is_only_told(tmp_path: Path) -> None:
    checks = kernel_message_checks(tmp_path)
    assert {check.value for check in checks} == {"not readable"}
    assert {check.status for check in checks} == {"info"}


def test_an_exhausted_ring_says_so_and_does_not_block(tmp_path: Path) -> None:
    """As /dev/kmsg: reading beyond the last record is an error and no end of file."""
    (tmp_path / "dev").mkdir()
    ring = tmp_path / "dev/kmsg"
    os.mkfifo(ring)
    # With both ends open there is no end of file; what is in it is read, and then no more comes.
    both = os.open(ring, os.O_RDWR)
    try:
        os.write(both, b"6,1,1,-;Out of memory: Killed process 1 (a)\n")
        found: list[str] = []
        reader = threading.Thread(
            target=lambda: found.extend(check.status for check in kernel_message_checks(tmp_path)),
            daemon=True,
        )
        reader.start()
        reader.join(30)
    finally:
        os.close(both)
    assert sorted(found) == ["ok"] * 6 + ["warn"]


OOM = "Out of memory: Killed process 9 (java)"
SWITCHED = "clocksource: Switched to clocksource acpi_pm"


def test_a_window_has_only_what_came_in_it(tmp_path: Path) -> None:
    ring = tree(tmp_path, {"dev/kmsg": f"6,1,1,-;{OOM}\n6,2,1,-;{SWITCHED}\n"}) / "dev/kmsg"
    probe = NoiseMonitor(tmp_path)
    probe.start([], [])
    assert probe.stop().kernel_log == {}
    probe.start([], [])
    with ring.open("a", encoding="utf-8") as log:
        log.write(f"6,3,1,-;harmless\n6,4,1,-;{SWITCHED}\n4,5,1,-;{OOM}\n")
    # A clock source is chosen at each boot; in a window it changes.
    assert probe.stop().kernel_log == {"clock trouble": [SWITCHED], "out of memory": [OOM]}


def test_a_window_whose_log_cannot_be_read_says_so(tmp_path: Path) -> None:
    # The copy is there, but comes too late for a window.
    probe = NoiseMonitor(tree(tmp_path, {"var/log/kern.log": OOM}))
    probe.start([], [])
    assert probe.stop().kernel_log is None


@pytest.mark.skipif(not os.access("/dev/kmsg", os.R_OK), reason="the log may not be read here")
def test_the_kernels_own_log_has_an_end() -> None:
    lines = read_kernel_log(Path("/"))
    assert lines
    assert KernelLogTail().finish() is not None
