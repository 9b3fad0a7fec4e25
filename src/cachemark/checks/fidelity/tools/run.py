"""Runs another load generator on the cases that it can play."""

import time
from collections.abc import Iterator
from functools import partial

from msgspec.structs import replace

from cachemark.checks.fidelity import judge
from cachemark.checks.fidelity.cases import Case, floor_of
from cachemark.checks.fidelity.judge import FidelityResult, PercentileResult, TimeFloor
from cachemark.checks.fidelity.log import Log, lateness_ns, percentile, services_ns
from cachemark.checks.fidelity.play import retry_until_judged
from cachemark.checks.fidelity.server import scripted
from cachemark.checks.fidelity.tools.tool import Tool, ToolJob, ToolResult
from cachemark.host.cpu_meter import run_delay_ns
from cachemark.host.placement import halves, usable_cpus
from cachemark.host.process import start
from cachemark.host.temporary import temporary_folder
from cachemark.model.address import parse_host_port
from cachemark.model.errors import TrialError

_GRACE_S = 30
_POLL_INTERVAL_S = 0.1
# Nothing is stored for tools, so replies are misses. Cases with larger values make no sense.
_VALUE_BYTES = 100
_NS_IN_MS = 1e6


def tool_results(
    tool: Tool, wanted: list[Case], tries: int, depth: int = 1
) -> Iterator[FidelityResult]:
    """Run each case on a tool; yields each result as soon as it is known.

    With a `depth` above 1, a tool that pipelines need not wait for a reply before it sends on.
    """
    program = tool.program()
    for case in wanted:
        if why := _unfit(tool, case, program):
            yield FidelityResult(client=tool.name, case=case.name, state="not applicable", why=why)
        else:
            attempt = partial(_find, tool, str(program), case, depth)
            yield retry_until_judged(attempt, tries)


def _unfit(tool: Tool, case: Case, program: str | None) -> str:
    """Why a tool cannot play a case; empty if it can."""
    if program is None:
        return f"{tool.programs[0]} is not on this machine: {tool.home}"
    if tool.silent:
        return tool.silent
    if not case.answer_ms or case.load.value_bytes > _VALUE_BYTES:
        return "a case for workers"
    if case.load.schedule not in tool.schedules:
        return f"it has no {case.load.schedule} arrivals"
    return ""


def _find(tool: Tool, program: str, case: Case, depth: int) -> FidelityResult:
    try:
        reported, log, _ = _play(tool, program, floor_of(case.load), 1)
        floor = _floor(reported, log)
        reported, log, waited = _play(tool, program, case, depth)
    except TrialError as error:
        return FidelityResult(client=tool.name, case=case.name, state="failed", why=error.text)
    lines = tool_lines(case, floor, reported, log)
    if not lines:
        why = "it reports none of the case's percentiles"
        return FidelityResult(client=tool.name, case=case.name, state="not applicable", why=why)
    why = _noise(case, log)
    state = "not judged"
    if not why:
        state, why = judge.judged(case, lines, [], waited)
    return FidelityResult(
        client=tool.name, case=case.name, state=state, why=why, lines=lines, floor=floor
    )


def _play(tool: Tool, program: str, case: Case, depth: int) -> tuple[ToolResult, Log, int]:
    """Run a tool against a script. Returns its result, the server's log, and its run delay in ns.

    Raises TrialError.
    """
    cpus = halves(usable_cpus())
    with temporary_folder() as folder:
        with scripted(case.script, folder, cpus[0]) as server:
            port = parse_host_port(server.address).port
            job = ToolJob(program=program, port=port, folder=folder, load=case.load, depth=depth)
            output, waited = _output(tool, job, cpus[1])
            log = server.end()
        return tool.read(job, output), log, waited


def _output(tool: Tool, job: ToolJob, cpus: str) -> tuple[str, int]:
    """The tool's output, and its run delay in ns. Raises TrialError."""
    path = job.folder / "output"
    with path.open("wb") as out, start(tool.command(job), cpus=cpus, stdout=out.fileno()) as child:
        before = waited = run_delay_ns([])
        until = time.monotonic() + job.seconds + _GRACE_S
        # The statistics of a thread vanish when it ends, so they are polled.
        while not child.wait(_POLL_INTERVAL_S):
            waited = max(waited, run_delay_ns([child.pid]))
            if time.monotonic() > until:
                raise TrialError(f"{tool.name}: did not end within {job.seconds + _GRACE_S} s")
        if child.exited():
            last = child.last_stderr_line() or "nothing"
            raise TrialError(f"{tool.name}: exited with status {child.exited()}: {last}")
    return path.read_text(encoding="utf-8", errors="replace"), waited - before


def _floor(reported: ToolResult, log: Log) -> TimeFloor:
    """The floor, from p50 and p99 or the next higher percentiles that the tool reports."""
    ordered = sorted(reported.percentiles_ms)
    middle = next((p for p in ordered if p >= 50), ordered[-1])
    high = next((p for p in ordered if p >= 99), ordered[-1])
    injected = percentile(services_ns(log), middle)
    return TimeFloor(
        p50_ns=max(0, round(reported.percentiles_ms[middle] * _NS_IN_MS) - injected),
        p99_ns=round(reported.percentiles_ms[high] * _NS_IN_MS),
    )


def tool_lines(
    case: Case, floor: TimeFloor, reported: ToolResult, log: Log
) -> list[PercentileResult]:
    """The results for the case's percentiles that the tool reports.

    In a closed loop the true times are those in the server's log. In an open loop they are the
    answer, because the tool's schedule is not known.
    """
    lines = []
    for percent, answer_ms in case.answer_ms.items():
        if percent not in reported.percentiles_ms:
            continue
        measured_ns = round(reported.percentiles_ms[percent] * _NS_IN_MS)
        line = judge.line(percent, answer_ms, floor, services_ns(log), measured_ns)
        if not case.load.closed:
            slack_ns = round(case.slack_ms * _NS_IN_MS)
            line = replace(line, injected_ns=line.answer_ns, slack_ns=slack_ns, noise_ns=0)
        lines.append(line)
    return lines


def _noise(case: Case, log: Log) -> str:
    """Why the host was too noisy (the server sent later than scripted); empty if it was not."""
    if not log.sent_ns:
        return "the tool sent no requests"
    late = percentile(lateness_ns(log), max(case.answer_ms))
    if late > max(case.slack_ms, 0.1) * _NS_IN_MS:
        return f"the server sent {judge.milliseconds(late)} ms late"
    return ""
