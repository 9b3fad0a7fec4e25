"""Where devices interrupt: machines of four CPUs, made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from cachemark.checks.doctor.kernel import interrupts, sources
from tests.checks.test_doctor import tree

HEAD = "           CPU0       CPU1       CPU2       CPU3\n"
NIC = " 36:       1000          0          0          0  PCI-MSIX-0000:00:02.0  1-edge  eth0-rx-0\n"
DISK = " 40:          0          0          0       1000  PCI-MSIX-0000:00:03.0   0-edge  nvme0q1\n"
RARE = " 41:          0          1          0          0  IO-APIC   4-edge      ttyS0\n"
TIMER = "LOC:   14510091   13277384   1   1   Local timer interrupts\n"
IRQ = "proc/irq/{}/{}affinity_list"


def judged(tmp_path: Path, files: dict[str, str]) -> tuple[str, str, str]:
    (check,) = interrupts([0, 1, 2, 3], tree(tmp_path, files))
    return check.status, check.value, check.remedy


def test_one_side_with_all_of_them_is_told_and_how_to_spread_them(tmp_path: Path) -> None:
    """`auto` gives a half of the CPUs to each side, 0-1 to one of them."""
    files = {"proc/interrupts": HEAD + NIC + RARE + TIMER, IRQ.format(36, "smp_"): "0-1"}
    status, value, remedy = judged(tmp_path, files)
    assert (status, value) == ("warn", "eth0-rx-0 → 0,1")
    assert "for irq in 36;" in remedy
    assert "echo 0,1,2,3" in remedy


@pytest.mark.parametrize(
    "files",
    [
        {"proc/interrupts": HEAD + NIC + DISK},
        {"proc/interrupts": HEAD + NIC, IRQ.format(36, "smp_"): "0-3"},
        # What is set is wider than where they go: that is what counts.
        {
            "proc/interrupts": HEAD + NIC + DISK,
            IRQ.format(36, "smp_"): "0-3",
            IRQ.format(36, "effective_"): "0",
            IRQ.format(40, "effective_"): "3",
        },
    ],
)
def test_what_falls_on_both_sides_is_fine(tmp_path: Path, files: dict[str, str]) -> None:
    status, _, remedy = judged(tmp_path, files)
    assert (status, remedy) == ("ok", "")


def test_the_effective_cpus_come_before_those_that_are_allowed(tmp_path: Path) -> None:
    files = {
        "proc/interrupts": HEAD + NIC,
        IRQ.format(36, "smp_"): "0-3",
        IRQ.format(36, "effective_"): "2",
    }
    assert judged(tmp_path, files)[:2] == ("warn", "eth0-rx-0 → 2")


def test_timers_and_what_never_came_are_no_devices(tmp_path: Path) -> None:
    never = " 50:  0  0  0  0  PCI-MSIX  0-edge  idle\n"
    found = sources(tree(tmp_path, {"proc/interrupts": HEAD + NIC + never + TIMER}))
    assert [(source.number, source.device, source.count) for source in found] == [
        (36, "eth0-rx-0", 1000)
    ]


def test_without_a_table_it_is_only_told(tmp_path: Path) -> None:
    assert judged(tmp_path, {})[:2] == ("info", "not readable")


def test_one_cpu_has_no_sides(tmp_path: Path) -> None:
    (check,) = interrupts([0], tree(tmp_path, {"proc/interrupts": HEAD + NIC}))
    assert (check.status, check.value) == ("info", "eth0-rx-0 → 0")
