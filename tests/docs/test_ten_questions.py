"""README's ten questions. tests/docs/test_commands.py has the command line take their commands."""

import re

from tests.conftest import ROOT

_SECTION = re.compile(r"^## Ten questions$(.*?)^## ", re.MULTILINE | re.DOTALL)
_QUESTION = re.compile(r"^(\d+)\. \*\*", re.MULTILINE)


def test_each_question_has_a_number_and_a_command() -> None:
    section = _SECTION.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert section is not None
    _, *parts = _QUESTION.split(section[1])
    assert parts[::2] == [str(number) for number in range(1, 11)]
    assert [
        number
        for number, text in zip(parts[::2], parts[1::2], strict=True)
        if "`cachemark " not in text
    ] == []
