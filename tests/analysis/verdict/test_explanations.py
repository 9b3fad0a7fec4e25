"""Every rule that a finding can name is explained, and nothing else is."""

import ast
from pathlib import Path

from cachemark.analysis import verdict
from cachemark.analysis.verdict.explanations import explanations
from cachemark.analysis.verdict.noise import _CPU_PRESSURE, _RULES
from cachemark.analysis.verdict.open_loop import LOAD_MISSED
from cachemark.analysis.verdict.withholding import GENERATOR_LAG
from cachemark.model.outcome import Verdict
from cachemark.runs.trials import judging

_MAKERS = {"Finding", "invalid_finding", "limit_finding", "note_finding"}


def _literal_rules(path: Path) -> set[str]:
    """The names of rules that the code of a file writes as literals."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in _MAKERS
        ):
            named = [keyword.value for keyword in node.keywords if keyword.arg == "rule"]
            for value in named or node.args[:1]:
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    found.add(value.value)
    return found


def test_each_rule_is_explained() -> None:
    folder = Path(verdict.__file__).parent
    files = [*folder.glob("*.py"), Path(judging.__file__)]
    literal = set().union(*map(_literal_rules, files))
    assert {"own-counts", "achieved", "drift", "distrust"} <= literal, "the search finds rules"
    noise = {rule.name for rule in (*_RULES, _CPU_PRESSURE)}
    assert set(explanations().rules) == literal | noise | {GENERATOR_LAG, LOAD_MISSED, "kernel-log"}


def test_each_verdict_is_explained() -> None:
    assert set(explanations().verdicts) == set(Verdict.__args__)


def test_an_explanation_is_sentences() -> None:
    known = explanations()
    for name, found in (known.verdicts | known.states | known.rules).items():
        assert found.meaning.endswith("."), name
        assert found.remedy == "" or found.remedy[-1] in ".`", name
