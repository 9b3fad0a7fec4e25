"""Containerfile and compose.yaml name what is there; building them needs a builder of images."""

import re
import shlex
from typing import Any

import pytest
import yaml

from cachemark.cli.program import app
from tests.conftest import ROOT

_LINES = (ROOT / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
INSTRUCTIONS = [line.split(maxsplit=1) for line in _LINES if line and not line.startswith("#")]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))


def stages() -> dict[str, list[list[str]]]:
    """The instructions of each stage, by its name, in their order."""
    found: dict[str, list[list[str]]] = {}
    for kind, text in INSTRUCTIONS:
        if kind == "FROM":
            found[text.rpartition(" AS ")[2]] = []
        if found:
            found[list(found)[-1]].append([kind, text])
    return found


def test_a_stage_uses_earlier_stages_only() -> None:
    known: list[str] = ["${BASE}"]
    for name, instructions in stages().items():
        for kind, text in instructions:
            if kind == "FROM":
                assert text.partition(" AS ")[0] in known
            if source := re.search(r"--from=(\S+)", text):
                assert source[1] in known
        known.append(name)


@pytest.mark.parametrize("target", ["core", "java", "all"])
def test_a_target_does_not_run_as_root(target: str) -> None:
    users = [text for kind, text in stages()[target] if kind == "USER"]
    assert users[-1] == "cachemark"


def test_each_language_is_in_a_target() -> None:
    """The files that its stage builds are copied, or its set-up runs in the target itself."""
    texts = [text for name in ("core", "java", "all") for _, text in stages()[name]]
    for folder in (path.parent for path in ROOT.glob("workers/*/setup")):
        copied = rf"--from=build-{folder.name} /opt/workers/{folder.name}\b"
        looked = rf"cachemark setup( \w+)* {folder.name}\b"
        assert any(re.search(f"{copied}|{looked}", text) for text in texts), folder.name


def test_compose_runs_known_commands_in_a_target_that_exists() -> None:
    service = COMPOSE["services"]["cachemark"]
    assert service["build"]["target"] in stages()
    program, *words = shlex.split(service["command"])
    assert program == "cachemark"
    verb, bound, _ = app.parse_args(words, exit_on_error=False, print_error=False)
    assert verb.__name__ == "run"
    assert bound.arguments
    _, _, neighbour = service["network_mode"].partition(":")
    assert [neighbour] == service["depends_on"]
