"""The setting of a suite's original stands beside that of a run, in report and page."""

import msgspec
import pytest

from cachemark.model import suites
from cachemark.model.outcome import ServerFacts
from cachemark.model.protocol import Ready
from cachemark.model.published import published_files
from cachemark.report.build import build
from cachemark.report.originals import facts
from tests.builders.outcomes import header
from tests.report.test_published import outcome

SUITES = ("emcache", "inprocess-vs-network", "java-clients", "ruby-clients", "server-modes")


@pytest.mark.parametrize("suite", SUITES)
def test_each_fact_has_a_value_of_today(suite: str) -> None:
    names = {fact.here.partition(":")[0] for file in published_files(suite) for fact in file.fact}
    assert names - {""} <= set(facts.FACTS)


def test_versions_stand_beside_versions() -> None:
    suite = "java-clients"
    trial = outcome(suite, "java/folsom", "multiget", "text-blocking-32-threads")
    played = msgspec.structs.replace(
        trial,
        worker=Ready(language="java", runtime="OpenJDK 21.0.1", library_version="1.21.0"),
        server=ServerFacts(kind="memcached", version="1.6.18", command=[], address="127.0.0.1:1"),
    )
    report = build(header(suites.find(suite)), [played])
    (section,) = [it for it in report.sections if it.title.startswith("The original's setting")]
    rows = {row[0]: row[1:] for row in section.rows}
    assert rows["Folsom"] == ["0.7.1", "1.21.0"]
    assert rows["Spymemcached"] == ["2.12.0", "–"]
    assert rows["Java"] == ['java version "1.8.0_72"', "OpenJDK 21.0.1"]
    assert rows["server"] == ["Memcached 1.4.14", "memcached 1.6.18"]
    assert rows["where the server is"] == ["localhost", "on this machine"]
    assert rows["CPU"][0] == "Intel(R) Core(TM) i7-4910MQ CPU @ 2.90GHz"


def test_a_run_of_no_suite_has_no_such_section() -> None:
    grid = msgspec.structs.replace(suites.find("java-clients"), name="mine")
    assert facts.sections(header(grid), []) == []
