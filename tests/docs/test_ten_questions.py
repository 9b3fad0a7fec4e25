"""README's ten questions: the command line takes every command as it stands there."""

from __future__ import annotations

import re
import shlex

import pytest

from cachemark.cli import app
from tests.conftest import ROOT

_SECTION = re.compile(r"^## Ten questions$(.*?)^## ", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"`(cachemark [^`]+)`")


def commands() -> list[str]:
    found = _SECTION.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert found is not None
    texts = _COMMAND.findall(found[1])
    return [part.strip() for text in texts for part in text.split("&&") if "VERB" not in part]


def test_each_question_is_numbered() -> None:
    found = _SECTION.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert found is not None
    numbers = re.findall(r"^(\d+)\. \*\*", found[1], re.MULTILINE)
    assert numbers == [str(number) for number in range(1, 11)]


@pytest.mark.parametrize("command", commands())
def test_the_command_line_takes_it(command: str) -> None:
    program, *arguments = shlex.split(command)
    assert program == "cachemark"
    app.parse_args(arguments, exit_on_error=False, print_error=False)
