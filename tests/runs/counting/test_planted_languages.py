"""Changed copies of a library of seven languages: the rules name what was changed first."""

from __future__ import annotations

import re
from inspect import getsource
from pathlib import Path

import msgspec
import pytest

from cachemark.analysis.why.causes import causes
from cachemark.analysis.why.report import Difference, differences
from cachemark.endpoints.clients import ClientSpec
from cachemark.host import process
from cachemark.host.system_calls import missing_reason
from cachemark.model.experiment import Keys, Load, Values, Workload
from cachemark.runs.counting.counting import CountingPlan, count
from tests.runs.counting.planted_copies import CHANGED, CHANGES, causes_of, original, planted
from tests.runs.counting.test_profile import FUNCTIONS

pytestmark = pytest.mark.skipif(bool(missing_reason()), reason="apt-get install strace")

# The first in the order of the rules are clear in one repetition.
QUICK = {
    "c": "another request",
    "go": "a connection",
    "java": "another request",
    "node": "another request",
    "perl": "two writes",
    "ruby": "two writes",
}
# Languages in docs/why.md.
LETTERS: dict[str, str] = {
    "c": "C",
    "go": "G",
    "java": "J",
    "node": "N",
    "perl": "L",
    "python": "P",
    "ruby": "R",
}
FILES = {
    "c": "planted.c",
    "go": "planted.go",
    "java": "Planted.java",
    "node": "planted.js",
    "perl": "planted.pm",
    "python": "planted_python.txt",
    "ruby": "planted.rb",
}
PAGE = Path(__file__).parents[3] / "docs" / "why.md"
# Each operation waits for 40 ms: too long to count allocations of thousands.
SLOW = "Nagle"
# On a busy machine these counts vary, or Java loses some, as a thread ends: they are clear in as
# many repetitions as `why` has.
NOISY = (
    *("a collection", "a copy", "a fault", "a large buffer", "a lock", "a sleep"),
    *("another thread", "polls"),
)
NOISY_REPEAT = 5


def counted(kind: str, clients: list[ClientSpec], repeat: int) -> dict[str, Difference]:
    """How each other client differs from the first one in an answer about both, by name."""
    plan = CountingPlan(
        clients=clients,
        workload=Workload(
            name=kind,
            mix={kind: 1},
            keys=Keys(count=50, length="20"),
            values=Values(size="100"),
            run=10,
        ),
        load=Load(name="one-caller"),
        repeat=repeat,
    )
    found = count(plan, process.binary_path(), lambda _: None)
    assert not [each.failure for each in found.works if each.failure]
    base, *others = found.works
    pairs = [differences([base, each], found.unit_costs) for each in others]
    return {each.client: each for (each,) in pairs}


def without_allocations(spec: ClientSpec) -> ClientSpec:
    client = msgspec.structs.replace(spec.client, counting_allocator="")
    return msgspec.structs.replace(spec, client=client)


def first_causes(found: dict[str, Difference]) -> dict[str, str]:
    return {name: each.findings[0].cause if each.findings else "" for name, each in found.items()}


@pytest.mark.parametrize("language", QUICK)
def test_a_planted_cause_is_named_first(language: str, tmp_path: Path) -> None:
    spec, name = original(language), QUICK[language]
    command = CHANGED[language](spec, tmp_path)
    found = counted("get", [spec, planted(spec, command, name)], 1)
    assert first_causes(found) == {name: causes_of(language)[name]}


@pytest.mark.slow("counts a dozen copies of a library three times")
@pytest.mark.parametrize("language", CHANGED)
def test_all_planted_causes_are_named_first(language: str, tmp_path: Path) -> None:
    spec, expected = original(language), causes_of(language)
    command = CHANGED[language](spec, tmp_path)
    copies = {name: planted(spec, command, name) for name in ["", *expected]}
    singles, slow = copies.pop("single gets", None), copies.pop(SLOW)
    noisy = [copies.pop(name) for name in NOISY if name in copies]
    found = counted("get", [spec, *copies.values()], 3)
    unchanged = found.pop("the same again")
    assert (unchanged.findings, unchanged.findings_of_base) == ([], [])
    found |= counted("get", [without_allocations(spec), without_allocations(slow)], 1)
    found |= counted("get", [spec, *noisy], NOISY_REPEAT) if noisy else {}
    found |= counted("mget", [spec, singles], 3) if singles else {}
    assert first_causes(found) == expected


def test_each_copy_has_the_changes_that_the_matrix_names() -> None:
    for language, file in FILES.items():
        source = (Path(__file__).parent / file).read_text() + getsource(CHANGED[language])
        names = causes_of(language)
        assert not [name for name in names if f'"{name}"' not in source.replace("'", '"')], language
        others = CHANGES.keys() - names
        assert not [name for name in others if f'"{name}"' in source.replace("'", '"')], language


def test_a_dozen_causes_are_planted_in_three_languages() -> None:
    assert sum(len(each.languages.split()) >= 3 for each in CHANGES.values()) >= 12


def test_the_docs_matrix_is_that_of_the_planted_copies() -> None:
    page = PAGE.read_text()
    (profiled,) = re.findall(r"\[profiles\]\(#profiles\) show it \(([A-Z ]+)\)", page)
    assert profiled.split() == sorted(LETTERS[name] for name in FUNCTIONS)
    planted_in = {
        each.cause: "".join(LETTERS[name] for name in each.languages.split())
        for each in CHANGES.values()
    }
    expected = [(rule.name, planted_in.get(rule.name, "not planted")) for rule in causes()]
    _, _, listed = page.partition("## The causes")
    assert re.findall(r"^- ([a-z- ]+), ([A-Z]+|not planted): ", listed, re.MULTILINE) == expected
