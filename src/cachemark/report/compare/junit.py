"""A comparison as JUnit XML, which CI servers show: a test case for each gated ratio."""

from xml.etree import ElementTree as ET

from cachemark.analysis.statistics import FIGURES, Comparison
from cachemark.model.foreign_text import clean_all
from cachemark.model.outcome import Cell
from cachemark.report.cells import cell_title
from cachemark.report.compare.gate import gate_line, gated
from cachemark.report.compare.model import ComparisonReport
from cachemark.report.compare.tables import head, ratio_text


def render(compared: ComparisonReport, _width: int | None) -> str:
    """The comparison as JUnit XML; the width is not used. Worse or missing is a failure.

    An unsettled figure is skipped, or fails if the gate says so.
    """
    compared = clean_all(compared)
    strict = compared.gate is not None and compared.gate.fail_on_inconclusive
    suites: dict[str, list[ET.Element]] = {}
    for row, of in gated(compared):
        title = FIGURES[of.figure].title
        suites.setdefault(title, []).append(_case(row.other, of, strict=strict))
    for cells, kind in ((compared.lost_cells, "missing"), (compared.left_out_cells, "left out")):
        fails = kind == "missing" or strict
        for cell in cells:
            case = ET.Element("testcase", classname="cells", name=cell_title(cell))
            reasons = compared.lost if kind == "missing" else compared.left_out
            _add(case, "failure" if fails else "skipped", kind, "\n".join(reasons))
            suites.setdefault("cells", []).append(case)
    every = [case for cases in suites.values() for case in cases]
    root = ET.Element("testsuites", {"name": head(compared)[0], **_counts(every)})
    for title, cases in suites.items():
        suite = ET.SubElement(root, "testsuite", {"name": title, **_counts(cases)})
        suite.extend(cases)
        ET.SubElement(suite, "system-out").text = "\n".join(
            line for line in (*head(compared), gate_line(compared), *compared.notes) if line
        )
    ET.indent(root)
    return f"<?xml version='1.0' encoding='UTF-8'?>\n{ET.tostring(root, encoding='unicode')}\n"


def _case(cell: Cell, of: Comparison, *, strict: bool) -> ET.Element:
    figure = FIGURES[of.figure]
    case = ET.Element("testcase", classname=figure.title, name=cell_title(cell))
    better = "more is better" if figure.more_is_better else "less is better"
    ratio = f"{ratio_text(of, of.ratio)} ×, {better}" if of.ratio else of.why
    if of.lost:
        _add(case, "failure", "missing", of.why)
    elif of.answer == "worse":
        _add(case, "failure", "worse", ratio)
    elif of.answer == "open":
        _add(case, "failure" if strict else "skipped", "open", ratio)
    else:
        ET.SubElement(case, "system-out").text = f"{of.answer}: {ratio}"
    return case


def _add(case: ET.Element, tag: str, kind: str, text: str) -> None:
    element = ET.SubElement(case, tag, message=f"{kind}: {text.splitlines()[0] if text else ''}")
    element.text = text
    if tag == "failure":
        element.set("type", kind)


def _counts(cases: list[ET.Element]) -> dict[str, str]:
    tags = [child.tag for case in cases for child in case]
    return {
        "tests": str(len(cases)),
        "failures": str(tags.count("failure")),
        "errors": "0",
        "skipped": str(tags.count("skipped")),
    }
