"""Foreign tools: what each adapter asks, and what it makes of an output."""

import shutil
import tomllib
from pathlib import Path

import pytest
from msgspec.structs import replace

from cachemark.checks.fidelity.cases import CaseLoad, cases
from cachemark.checks.fidelity.tools import TOOLS, ToolJob, tool_results
from cachemark.model.errors import TrialError
from tests.conftest import ROOT

OUTPUTS = Path(__file__).with_name("outputs")
CLOSED = CaseLoad(ops=500)
OPEN = CaseLoad(schedule="uniform", rate=250, duration_ms=4000)


def job(folder: Path, load: CaseLoad = CLOSED) -> ToolJob:
    return ToolJob(program="/bin/tool", port=4711, folder=folder, load=load)


def told(name: str, folder: Path, load: CaseLoad = CLOSED) -> dict[float, float]:
    """The figures that an adapter reads from the stored output of its tool."""
    output = (OUTPUTS / f"{name}.txt").read_text()
    return TOOLS[name].read(job(folder, load), output).percentiles_ms


def test_memaslap(tmp_path: Path) -> None:
    """A bucket's upper end, but never above the longest; gets alone."""
    times = told("memaslap", tmp_path)
    assert (times[50], times[90], times[97]) == (0.016, 0.032, 0.064)
    assert (times[99.5], times[100]) == (16.384, 23.994)


def test_mutilate(tmp_path: Path) -> None:
    times = told("mutilate", tmp_path)
    answer = {1: 0.0431, 5: 0.0452, 10: 0.0481, 90: 0.0558, 95: 0.0566, 99: 0.0715}
    assert times == pytest.approx(answer)


def test_ycsb_has_two_views(tmp_path: Path) -> None:
    output = (OUTPUTS / "ycsb.txt").read_text()
    closed = TOOLS["YCSB"].read(job(tmp_path), output).percentiles_ms
    assert (len(closed), closed[50], closed[99.5], closed[100]) == (10, 0.275, 121.407, 280.063)
    intended = TOOLS["YCSB"].read(job(tmp_path, OPEN), output).percentiles_ms
    assert (len(intended), intended[50], intended[99.5]) == (10, 490.751, 1185.791)
    assert intended[100] == 1188.863


def test_rpc_perf(tmp_path: Path) -> None:
    times = told("rpc-perf", tmp_path)
    assert (times[50], times[99], times[99.9], times[99.99]) == (0.087, 0.966, 4.259, 9.24)
    assert times[100] == 12.451


def test_rpc_perf_learns_that_a_closed_loop_has_no_limit(tmp_path: Path) -> None:
    """It refuses settings without the table of the limit, which may be empty."""
    for load in (CLOSED, OPEN):
        path = TOOLS["rpc-perf"].command(job(tmp_path, load))[1]
        limit = tomllib.loads(Path(path).read_text())["workload"]["ratelimit"]
        assert limit == ({} if load.closed else {"start": 250})


def test_cachecannon_has_two_views(tmp_path: Path) -> None:
    assert told("cachecannon", tmp_path)[99] == 0.12
    intended = told("cachecannon", tmp_path, OPEN)
    assert (intended[99], intended[99.9], intended[100]) == (90, 99, 100.2)


def test_memtier(tmp_path: Path) -> None:
    shutil.copy(OUTPUTS / "memtier.json", tmp_path)
    times = TOOLS["memtier_benchmark"].read(job(tmp_path), "").percentiles_ms
    assert times == {50: 1.055, 99: 1.207, 99.5: 4.3}


@pytest.mark.parametrize("name", [name for name, tool in TOOLS.items() if not tool.silent])
def test_each_tool(name: str, tmp_path: Path) -> None:
    """It gets the server's address and the rate; an output without times is refused."""
    tool = TOOLS[name]
    for load in [CLOSED, *([OPEN] if "uniform" in tool.schedules else [])]:
        words = tool.command(job(tmp_path, load))
        files = " ".join(path.read_text() for path in tmp_path.iterdir())
        said = " ".join(words) + files
        assert words[0] == "/bin/tool"
        assert "4711" in said
        assert load.closed or "250" in said
    with pytest.raises(TrialError, match="no times"):
        tool.read(job(tmp_path), "Segmentation fault\n")


@pytest.mark.parametrize("name", [name for name, tool in TOOLS.items() if tool.fill])
def test_a_tool_that_reads_only_has_stored_the_same_keys(name: str, tmp_path: Path) -> None:
    """The tool stores and reads at the same server, with the same number and size of keys."""
    tool = TOOLS[name]
    assert tool.fill is not None
    said = []
    for command in (tool.fill, tool.command):
        words = command(job(tmp_path, CaseLoad(ops=500, keys=12_345)))
        files = " ".join(path.read_text() for path in tmp_path.iterdir())
        said.append(" ".join(words) + files)
    for told in said:
        assert "4711" in told
        assert "12345" in told
    assert said[0] != said[1]


@pytest.mark.parametrize("name", [name for name, tool in TOOLS.items() if tool.pipelines])
def test_a_tool_that_pipelines_is_told_how_deep(name: str, tmp_path: Path) -> None:
    deep = replace(job(tmp_path), depth=678)
    words = TOOLS[name].command(deep)
    assert "678" in " ".join(words) + " ".join(path.read_text() for path in tmp_path.iterdir())


def test_mutilate_spins_unless_cpu_time_is_to_be_saved(tmp_path: Path) -> None:
    command = TOOLS["mutilate"].command
    assert "--blocking" not in command(job(tmp_path))
    assert "--blocking" in command(replace(job(tmp_path), saves_cpu=True))


def test_the_page_about_other_load_generators_has_each_of_them() -> None:
    page = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1].strip() for line in page.splitlines() if line.startswith("|")]
    assert [name for name in TOOLS if not any(row.startswith(name) for row in rows)] == []


def test_a_missing_or_silent_tool_is_not_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    (finding,) = tool_results(TOOLS["mutilate"], [cases()["constant"]], 1)
    assert finding.state == "not applicable"
    assert "not on this machine" in finding.why


@pytest.mark.skipif(shutil.which("memcaslap") is None, reason="apt-get install libmemcached-tools")
def test_a_real_tool() -> None:
    """Whatever this host makes of the times, the tool was asked, answered and was understood."""
    (finding,) = tool_results(TOOLS["memaslap"], [cases()["constant"]], 1)
    assert [line.percent for line in finding.lines] == [50, 90, 99], finding.why
    assert all(line.injected_ns >= 2_000_000 for line in finding.lines)
    assert finding.lines[0].measured_ns >= 2_000_000
