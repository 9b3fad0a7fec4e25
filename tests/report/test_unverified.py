"""A server that did not confirm the clients' counts: said first, in every form, and once."""

import msgspec

from cachemark.model.audit import CONSERVATION, Audit, Fitness, ProbeResult
from cachemark.report import answers
from cachemark.report.build import build
from cachemark.report.formats import RENDERERS
from cachemark.report.html import render as html
from cachemark.report.model import Report
from tests.builders.outcomes import experiment, header, measured

SAID = "Not verified: embedded did not confirm all counts of the clients: counters: no `stats`."


def report(*findings: ProbeResult) -> Report:
    clients = {"native": 3000, "python/fast": 2000}
    made = [measured(client, block, rate) for block in range(5) for client, rate in clients.items()]
    audit = Audit(servers=[Fitness(server="embedded", checks=9, findings=list(findings))])
    return build(header(experiment(list(clients))), made, audit)


def test_unconfirmed_counts_of_a_server_come_first_outside_notes() -> None:
    silent = ProbeResult(name="counters", fit=False, seen="no `stats`", excludes=[CONSERVATION])
    made = report(silent)
    (line,) = made.unverified
    assert line.startswith(SAID)
    assert line not in made.notes
    assert made.warnings == [line, *made.notes]
    assert f"## Notes\n\n- {line}" in RENDERERS["markdown"](made, None)
    for render in (answers.render, RENDERERS["table"]):
        assert " ".join(render(made, 2000).split()).count(SAID) == 1
    assert html(made, None).count("did not confirm all counts") == 1


def test_a_report_says_where_lost_writes_are_not_seen() -> None:
    made = report()
    (work,) = made.header.experiment.workloads
    for mix, said in (({"set": 1.0}, True), ({"mget": 1.0, "set": 1.0}, False)):
        changed = msgspec.structs.replace(work, mix=mix, sequence=[], trace=None)
        of = msgspec.structs.replace(made.header.experiment, workloads=[changed])
        line = f"{work.name}: lost and stale writes are not seen"
        head = msgspec.structs.replace(made.header, experiment=of)
        text = RENDERERS["markdown"](build(head, [measured("native", 0, 3000)], None), None)
        assert (line in text) == said


def test_nothing_is_said_about_a_server_whose_counters_were_compared() -> None:
    slow = ProbeResult(name="slow", fit=False, seen="a second", excludes=["get"])
    assert report().unverified == report(slow).unverified == []
