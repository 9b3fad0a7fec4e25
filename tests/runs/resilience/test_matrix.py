"""The matrix and its pages: worst first, sittings that differ, evidence for each cell."""

import base64
import csv
import io
import json
import re

import msgspec

from cachemark.analysis.resilience.answers import CallAnswer
from cachemark.analysis.resilience.cell import CellName, CellOutcome, WrongValue
from cachemark.analysis.resilience.figures import Phases, figures
from cachemark.analysis.resilience.verdict import ClientVerdict, FaultFinding
from cachemark.endpoints.clients import registry
from cachemark.host import process
from cachemark.model.faults import all_faults, chosen_faults
from cachemark.report.document import Document, DocumentPart
from cachemark.report.resilience.export import COLUMNS, RENDERERS, ResilienceReport, exports
from cachemark.report.resilience.html import INDEX, file_name, pages
from cachemark.report.resilience.known_issues import KnownIssue, all_issues, issues_of
from cachemark.report.resilience.matrix import matrix, matrix_table
from cachemark.report.terminal import draw
from tests.runs.resilience.test_verdict import QUIET, played

_FAULTS = ["frozen-1s", "restarted"]


def outcome(
    client: str, fault: str, verdict: ClientVerdict | None, sitting: int = 1, **more: object
) -> CellOutcome:
    name = CellName(client=client, profile="common", fault=fault, sitting=sitting)
    phases = Phases(start_ns=0, fault_ns=100, fault_end_ns=200, end_ns=300_000_000)
    broken = verdict is not None and verdict != "safe"
    made = CellOutcome(
        name=name,
        library="library",
        verdict=verdict,
        findings=[FaultFinding(rule="a rule", verdict=verdict or "safe", why="<why>")]
        if broken
        else [],
        phases=phases,
        timeline=[{"right": 3}, {"right": 1, "wrong": 2}, {}],
    )
    return msgspec.structs.replace(made, **more)


def test_the_worst_client_is_first_an_unplayed_one_last() -> None:
    rows = matrix(
        [
            outcome("x/absent", "frozen-1s", None, unsupported="no server"),
            outcome("x/good", "frozen-1s", "safe"),
            outcome("x/bad", "frozen-1s", "unsafe"),
            outcome("x/slow", "frozen-1s", "degraded"),
            outcome("x/slower", "frozen-1s", "degraded"),
            outcome("x/slower", "restarted", "degraded"),
        ],
        _FAULTS,
    )
    assert [row.client for row in rows] == ["x/bad", "x/slower", "x/slow", "x/good", "x/absent"]
    assert rows[-1].unsupported == "no server"


def test_sittings_that_differ_say_so() -> None:
    sittings = [outcome("x/y", "frozen-1s", v, n) for n, v in enumerate(("safe", "hangs", "safe"))]
    ((row),) = matrix(sittings, _FAULTS)
    assert [cell.text for cell in row.cells] == ["hangs 1/3", "–"]
    same = [outcome("x/y", "frozen-1s", "safe", n) for n in range(3)]
    assert matrix(same, _FAULTS)[0].cells[0].text == "safe"
    failed = [outcome("x/y", "frozen-1s", None, failed="no answer")]
    assert matrix(failed, _FAULTS)[0].cells[0].text == "failed"


def test_a_safe_client_says_how_many_of_its_calls_failed() -> None:
    half = figures(played([*QUIET, (1000, 1001, "right"), (1001, 1501, "timeout")]))
    none = figures(played([*QUIET, (1000, 1001, "right")]))
    many: list[tuple[int, int, CallAnswer]] = [
        (1000 + at, 1001 + at, "timeout" if at % 2 else "right") for at in range(10)
    ]
    share = figures(played([*QUIET, *many]))
    for observed, text in (
        (share, "safe, 50 % of calls failed"),
        (half, "safe, 1 of 2 calls failed"),
        (none, "safe"),
    ):
        rows = matrix([outcome("x/y", "frozen-1s", "safe", figures=observed)], _FAULTS)
        assert rows[0].cells[0].text == text


def test_calls_that_end_after_the_fault_are_told_as_waiting() -> None:
    phases = Phases(start_ns=0, fault_ns=10**9, fault_end_ns=2 * 10**9, end_ns=4 * 10**9)
    late: list[tuple[int, int, CallAnswer]] = [(2000, 2001, "right")] * 400
    soon: list[tuple[int, int, CallAnswer]] = [(1000, 1001, "right")]
    for ended, text in ((0, "100 % of due calls waited"), (4, "99 % of due calls waited")):
        seen = figures(played([*soon * ended, *late]))
        rows = matrix([outcome("x/y", "frozen-1s", "safe", figures=seen, phases=phases)], _FAULTS)
        assert rows[0].cells[0].text == f"safe, {text}"


def test_no_fault_is_lost_in_a_narrow_terminal() -> None:
    faults = [f"one-of-three-restarted-{number}s" for number in range(10)]
    rows = matrix([outcome("x/y", name, "safe") for name in faults], faults)
    part = DocumentPart(table=matrix_table(rows, faults), whole=True)
    for width in (60, 120, 400):
        text = draw(Document(title="", parts=[part]), width)
        assert [word for word in text.split() if word in faults] == faults, width
        assert text.count("x/y") == text.count("common") == text.count("client"), width


def test_every_cell_of_the_page_leads_to_its_evidence() -> None:
    wrong = WrongValue(key="key-1", what="truncated", value=base64.b64encode(b"<v>").decode())
    rows = matrix(
        [
            outcome("x/bad", "frozen-1s", "unsafe", wrong_values=[wrong]),
            outcome("x/bad", "restarted", "safe"),
            outcome("command:sh -c 'evil'", "frozen-1s", "safe"),
        ],
        _FAULTS,
    )
    made = pages(rows, chosen_faults(_FAULTS, quick=False), "about <this> run")
    links = re.findall(r'href="([^"#]+)(?:#([^"]+))?"', made[INDEX])
    assert links
    for page, anchor in links:
        assert page in made
        assert not anchor or f'id="{anchor}"' in made[page] or anchor.endswith("-restarted")
    evidence = made[file_name("x/bad")]
    assert "cachemark resilience" in evidence
    assert "key-1 got truncated" in evidence
    assert evidence.count("<svg") == 2
    for text in made.values():
        assert "<why>" not in text, "texts are escaped"
        assert "about &lt;this&gt; run" in text


def test_exports_have_each_sitting_and_each_cell_once() -> None:
    sittings = [
        outcome("python/aiomcache", "frozen-1s", "hangs", 1, library_version="0.8.2"),
        outcome("python/aiomcache", "frozen-1s", "safe", 2, library_version="0.8.2"),
        outcome("x/absent", "frozen-1s", None, unsupported="no server"),
    ]
    report = ResilienceReport(outcomes=sittings, faults=_FAULTS, about="this machine")
    files = exports(report)
    lines = list(csv.reader(io.StringIO(files["matrix.csv"])))
    assert tuple(lines[0]) == COLUMNS
    found = [dict(zip(COLUMNS, line, strict=True)) for line in lines[1:]]
    assert [(line["client"], line["verdict"], line["rules"]) for line in found] == [
        ("python/aiomcache", "hangs", "a rule"),
        ("python/aiomcache", "safe", ""),
        ("x/absent", "", ""),
    ]
    assert found[2]["note"] == "no server"
    first, last = json.loads(files["matrix.json"])
    assert [cell["fault"] for cell in first["cells"]] == _FAULTS
    cell = first["cells"][0]
    assert (cell["verdict"], cell["times"], cell["sittings"]) == ("hangs", 1, 2)
    assert cell["why"] == ["hangs: <why>"]
    assert [url for url in first["known_issues"] if url.endswith("/489")]
    assert last["unsupported"] == "no server"
    title, _, about, _, head, _, row, _, why, unplayed = files["matrix.md"].splitlines()
    assert title == "# What clients do when their server fails"
    assert about == "this machine  "
    assert head == "| client | profile | frozen-1s | restarted |"
    assert row == "| python/aiomcache | common | hangs 1/2 | – |"
    assert why == "- python/aiomcache (common), frozen-1s: hangs: &lt;why>"
    assert unplayed == "- x/absent (common) is not played: no server"
    page = RENDERERS["html"](report, None)
    assert "hangs: &lt;why&gt;" in page
    assert all(f'download="resilience.{form}"' in page for form in ("csv", "json"))


def test_a_row_links_the_public_reports_about_its_version() -> None:
    rows = matrix([outcome("python/aiomcache?pool=1", "frozen-1s", "safe")], _FAULTS)
    made = pages(rows, chosen_faults(_FAULTS, quick=False), "about")
    for text in made.values():
        assert 'href="https://github.com/aio-libs/aiomcache/issues/489"' in text


def test_a_mended_version_does_not_link_the_report() -> None:
    (issue,) = issues_of("ruby/dalli-meta", "4.3.3")
    assert isinstance(issue, KnownIssue)
    assert issue.label == "#1135"
    assert issues_of("ruby/dalli-meta", "5.0.6") == issues_of("ruby/dalli-meta", "5.1") == []
    assert issues_of("ruby/dalli-meta", "") == [issue], "nobody knows: it may have it"
    assert issues_of("x/nobody", "1") == []


def test_known_issues_name_clients_and_faults_that_exist() -> None:
    clients, faults = registry(process.binary_path()), all_faults()
    for issue in all_issues():
        assert set(issue.clients) <= set(clients), issue.url
        assert set(issue.faults) <= set(faults), issue.url
        assert issue.what.endswith(".")
