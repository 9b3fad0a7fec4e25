"""The doctor: each status by its stated limits, and never a crash where files are missing."""

import json
import os
import resource
import time
from pathlib import Path

import pytest

from cachemark.checks.doctor import doctor, jitter, kernel, machine, software
from cachemark.checks.doctor.kernel import interrupts, sources
from cachemark.cli import main
from cachemark.endpoints.clients import Client
from cachemark.host.facts import facts
from cachemark.host.process import ENGINE_REMEDY
from cachemark.model.machine_limits import Check, Limits, limit_check, word_check

HEAD = "           CPU0       CPU1       CPU2       CPU3\n"
NIC = " 36:       1000          0          0          0  PCI-MSIX-0000:00:02.0  1-edge  eth0-rx-0\n"
DISK = " 40:          0          0          0       1000  PCI-MSIX-0000:00:03.0   0-edge  nvme0q1\n"
RARE = " 41:          0          1          0          0  IO-APIC   4-edge      ttyS0\n"
TIMER = "LOC:   14510091   13277384   1   1   Local timer interrupts\n"
IRQ = "proc/irq/{}/{}affinity_list"


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def by_name(checks: list[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks}


@pytest.mark.parametrize(
    ("figure", "status"),
    [(None, "info"), (0.5, "ok"), (0.51, "warn"), (2.0, "warn"), (2.01, "fail")],
)
def test_limits(figure: float | None, status: str) -> None:
    check = limit_check("x", figure, Limits(unit="%", warn=0.5, fail=2), "mend it")
    assert check.status == status
    assert check.limits == "warn above 0.5 %, fail above 2 %"
    assert check.remedy == ("mend it" if status in ("warn", "fail") else "")


@pytest.mark.parametrize(("value", "status"), [("", "info"), ("a", "ok"), ("c", "warn")])
def test_words(value: str, status: str) -> None:
    assert word_check("x", value, ("a", "b"), "mend it").status == status


@pytest.mark.parametrize(("avg10", "status"), [("0.00", "ok"), ("1.50", "warn"), ("20.71", "fail")])
def test_pressure(tmp_path: Path, avg10: str, status: str) -> None:
    text = f"some avg10={avg10} avg60=99.00 avg300=99.00 total=1\nfull avg10=99.00 total=0\n"
    checks = by_name(machine.load(2, tree(tmp_path, {"proc/pressure/cpu": text})))
    assert checks["cpu pressure"].status == status
    assert checks["io pressure"].value == "not readable"


@pytest.mark.parametrize(("load", "status"), [("0.99", "ok"), ("1.01", "warn")])
def test_load_is_for_each_cpu(tmp_path: Path, load: str, status: str) -> None:
    root = tree(tmp_path, {"proc/loadavg": f"{load} 9.00 9.00 1/100 1\n"})
    assert by_name(machine.load(2, root))["load"].status == status


V2 = {"proc/self/cgroup": "0::/box/job\n"}
V1 = {"proc/self/cgroup": "3:cpu,cpuacct:/job\n2:memory:/other\n0::/\n"}


@pytest.mark.parametrize(
    ("files", "status", "value"),
    [
        ({}, "info", "not readable"),
        ({**V2, "sys/fs/cgroup/box/job/cpu.max": "max 100000\n"}, "ok", "none"),
        (
            {**V2, "sys/fs/cgroup/box/job/cpu.max": "150000 100000\n"},
            "warn",
            "1.5 CPUs, throttled 0 times",
        ),
        (
            {
                **V2,
                "sys/fs/cgroup/box/job/cpu.max": "max 100000",
                "sys/fs/cgroup/box/cpu.max": "50000 100000",
                "sys/fs/cgroup/box/cpu.stat": "nr_periods 9\nnr_throttled 3\n",
            },
            "fail",
            "0.5 CPUs, throttled 3 times",
        ),
        (
            {
                **V1,
                "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
            },
            "ok",
            "none",
        ),
        (
            {
                **V1,
                "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us": "200000\n",
                "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
            },
            "warn",
            "2 CPUs, throttled 0 times",
        ),
    ],
)
def test_cpu_quota(tmp_path: Path, files: dict[str, str], status: str, value: str) -> None:
    (check,) = machine.quota(tree(tmp_path, files))
    assert (check.status, check.value) == (status, value)


def test_one_cpu_is_too_few(tmp_path: Path) -> None:
    (check,) = machine.usable([0], tmp_path)
    assert check.status == "warn"
    assert check.remedy


@pytest.mark.parametrize(("siblings", "status"), [("0-1", "fail"), ("{}", "ok")])
def test_both_sides_on_one_core(tmp_path: Path, siblings: str, status: str) -> None:
    path = "sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
    root = tree(tmp_path, {path.format(cpu): siblings.format(cpu) for cpu in (0, 1)})
    assert by_name(machine.usable([0, 1], root))["placement auto"].status == status


def test_frequency_and_clock(tmp_path: Path) -> None:
    cpu = "sys/devices/system/cpu"
    clock = "sys/devices/system/clocksource/clocksource0/current_clocksource"
    root = tree(
        tmp_path,
        {
            f"{cpu}/cpu0/cpufreq/scaling_governor": "powersave",
            f"{cpu}/cpufreq/boost": "1",
            clock: "hpet",
        },
    )
    checks = by_name([*machine.frequency(root), *machine.clock(root)])
    assert {check.status for check in checks.values()} == {"warn"}
    assert "cpufreq/boost" in checks["turbo"].remedy


def test_swap_in_use(tmp_path: Path) -> None:
    text = "MemAvailable: 1048576 kB\nSwapTotal: 2048 kB\nSwapFree: {} kB\n"
    used = machine.memory(tree(tmp_path, {"proc/meminfo": text.format(1024)}))
    assert by_name(used)["swap in use"].status == "warn"
    assert by_name(used)["memory available"].value == "1.0 GiB"
    free = machine.memory(tree(tmp_path, {"proc/meminfo": text.format(2048)}))
    assert by_name(free)["swap in use"].status == "ok"


@pytest.mark.parametrize(
    ("soft", "status"), [(256, "warn"), (4096, "ok"), (resource.RLIM_INFINITY, "ok")]
)
def test_open_files(monkeypatch: pytest.MonkeyPatch, soft: int, status: str) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _what: (soft, soft))
    (check,) = machine.open_files()
    assert check.status == status


def test_a_clock_that_jumps_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([0, 10, 5_000, 4_000, 4_500, 9_000])
    monkeypatch.setattr(time, "perf_counter_ns", lambda: next(readings))
    assert jitter.spin(9_000) == jitter.ClockGaps(longest_ns=4_990, backward=1)


def test_sampling_leaves_our_cpus_as_they_were(tmp_path: Path) -> None:
    before = os.sched_getaffinity(0)
    checks = by_name(jitter.jitter_checks(sorted(before), tmp_path, 0.02))
    assert os.sched_getaffinity(0) == before
    assert checks["steal"].value == "not readable"
    assert checks["clock order"].status == "ok"


@pytest.mark.parametrize("version", ["", "cachemark-engine 0.0.0"])
def test_an_engine_that_is_missing_or_another(version: str) -> None:
    check = software.engine(version)
    assert (check.status, check.remedy) == ("fail", ENGINE_REMEDY)


def test_workers_are_counted_by_language(tmp_path: Path) -> None:
    present = Client(id="a/x", language="a", command=["sh"])
    absent = Client(
        id="a/y",
        language="a",
        command=["sh"],
        needs=str(tmp_path / "absent"),
        setup="make workers",
    )
    (both,) = software.workers([present, absent])
    assert (both.value, both.status, both.remedy) == ("1 of 2 ready", "info", "make workers")
    (one,) = software.workers([present])
    assert (one.value, one.status) == ("1 of 1 ready", "ok")


def test_nothing_readable_is_no_crash_and_no_warning(tmp_path: Path) -> None:
    checks = doctor(tmp_path, sample_s=0.02)
    read_from_files = ("load", "cpu governor", "turbo", "clocksource", "swap in use", "steal")
    for name in read_from_files:
        assert by_name(checks)[name].value == "not readable"
        assert by_name(checks)[name].status == "info"


def test_names_are_unique_and_troubles_have_limits_and_remedies() -> None:
    checks = doctor(sample_s=0.02)
    assert len(by_name(checks)) == len(checks)
    for check in checks:
        if check.status in ("warn", "fail"):
            assert check.limits
            assert check.remedy


def test_the_verb_exits_by_what_it_found(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["doctor", "--json"])
    checks = json.loads(capsys.readouterr().out)
    failed = any(check["judgement"] == "fail" for check in checks)
    assert caught.value.code == (1 if failed else 0)


def test_the_verb_shows_the_limits(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["doctor", "--limits"])
    out = capsys.readouterr().out
    assert "limits" in out
    assert " warnings" in out


def test_programs_that_are_missing_have_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    checks = by_name(software.software(facts()))
    for name in ("memcached", "setpriv"):
        assert checks[name].status == "warn"
        assert "apt-get install" in checks[name].remedy
    assert checks["engine"].status == "ok"


TWO_CORES = "\n\n".join(
    f"processor\t: {n}\nmicrocode\t: 0x2b\nphysical id\t: 0\ncore id\t\t: {n // 2}"
    for n in range(4)
)


def test_the_cpus_threads_are_told_by_core_and_socket(tmp_path: Path) -> None:
    checks = by_name(machine.cpu(tree(tmp_path, {"proc/cpuinfo": TWO_CORES + "\n"})))
    assert checks["cpu topology"].value == "4 threads, 2 cores, sockets: 1"
    assert checks["cpu microcode"].value == "0x2b"
    # A kernel that tells no cores is not guessed at.
    bare = by_name(machine.cpu(tree(tmp_path, {"proc/cpuinfo": "processor\t: 0\n"})))
    assert bare["cpu topology"].value == "not readable"


def test_an_audit_daemon_is_warned_of(tmp_path: Path) -> None:
    quiet = by_name(kernel.background_activity(tree(tmp_path, {"proc/1/comm": "init\n"}), 2))
    assert quiet["auditd"].status == "ok"
    watched = by_name(kernel.background_activity(tree(tmp_path, {"proc/7/comm": "auditd\n"}), 2))
    assert (watched["auditd"].status, watched["auditd"].value) == ("warn", "runs")
    assert watched["auditd"].remedy


def judged(tmp_path: Path, files: dict[str, str]) -> tuple[str, str, str]:
    (check,) = interrupts([0, 1, 2, 3], tree(tmp_path, files))
    return check.status, check.value, check.remedy


def test_interrupts_on_one_sides_cpus_are_named_with_a_remedy(tmp_path: Path) -> None:
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
        # The sets of IRQs are wider than the CPUs that get them: the latter count.
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
