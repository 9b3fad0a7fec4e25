"""The commands of the pages: the command line takes each of them, and plans what can be planned."""

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from itertools import groupby, takewhile
from pathlib import Path

import cyclopts
import pytest

from cachemark.cli.program import app
from cachemark.host.process import binary_path
from tests.cli.in_process import Inside
from tests.conftest import ROOT
from tests.docs.test_prose import PAGES

_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`(cachemark [a-z][^`]*)`")
_LINE = re.compile(r"^\s*(?:\S*/)?cachemark(?:-engine)? [a-z]", re.MULTILINE)
# Words of a page that stand for many; the others are names, which any text may be.
_PLACEHOLDER = {"SHELL": "bash", "VERB": "run", "N": "3", "FORMAT": "json"}
# A reader has a run, a program, other hosts.
_READERS_OWN = re.compile(r"\b(RUN|SUITE|FILE|LANGUAGE)\b|/opt/|hosts\.toml|my_worker|--resume")


def blocks(page: str) -> list[tuple[str, str]]:
    """The language and the text of each block of code."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [(match[2], match[3]) for match in _BLOCK.finditer(text)]


def typed(text: str) -> Iterator[list[str]]:
    """The words of each command of a shell's text, without comments and redirections."""
    for line in text.splitlines():
        words = shlex.split(line, comments=True)
        for is_end, command in groupby(words, lambda word: word in ("&&", "&", "|")):
            if not is_end:
                yield list(takewhile(lambda word: word != ">", command))


def commands(page: str, program: str) -> list[list[str]]:
    """The arguments of each command in a page's blocks that starts a program."""
    shell = (text for language, text in blocks(page) if language == "sh")
    return [_arguments(words) for text in shell for words in typed(text) if _is(words, program)]


def mentions(page: str) -> list[list[str]]:
    """The arguments of each `cachemark` command in a page's sentences."""
    prose = _BLOCK.sub("", (ROOT / page).read_text(encoding="utf-8"))
    spans = (" ".join(span.split()) for span in _SPAN.findall(prose))
    return [_arguments(words) for span in spans for words in typed(span) if _is(words, "cachemark")]


def _is(words: list[str], program: str) -> bool:
    return bool(words) and Path(words[0]).name == program


def _arguments(words: list[str]) -> list[str]:
    return [_PLACEHOLDER.get(word, word) for word in words[1:]]


def refusals(all_arguments: list[list[str]], *ignored: type[Exception]) -> list[str]:
    """Why the command line does not take these arguments, but for some reasons."""
    texts: list[str] = []
    for arguments in all_arguments:
        try:
            app.parse_args(arguments, exit_on_error=False, print_error=False)
        except ignored:
            continue
        except cyclopts.CycloptsError as error:
            texts.append(f"{shlex.join(arguments)}: {error}")
    return texts


@pytest.mark.parametrize("page", PAGES)
def test_blocks_of_commands_are_marked(page: str) -> None:
    texts = [text for language, text in blocks(page) if language != "sh" and _LINE.search(text)]
    assert texts == []


@pytest.mark.parametrize("page", PAGES)
def test_the_command_line_takes_what_blocks_have(page: str) -> None:
    assert refusals(commands(page, "cachemark")) == []


@pytest.mark.parametrize("page", PAGES)
def test_the_command_line_takes_what_sentences_have(page: str) -> None:
    # A sentence may name an option without its value.
    assert refusals(mentions(page), cyclopts.MissingArgumentError) == []


@pytest.mark.parametrize("page", PAGES)
def test_the_engine_takes_what_blocks_have(page: str) -> None:
    for arguments in commands(page, "cachemark-engine"):
        # Arguments are read from left to right, so a wrong one is noticed before --help.
        command = [binary_path(), *arguments, "--help"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("page", PAGES)
def test_runs_can_be_planned(page: str, inside: Inside, tmp_path: Path) -> None:
    shutil.copyfile(ROOT / "docs" / "examples" / "trace.csv", tmp_path / "requests.csv")
    # README's questions have their commands in sentences.
    found = [*commands(page, "cachemark"), *(mentions(page) if page == "README.md" else [])]
    for arguments in found:
        if arguments[0] == "new" or arguments[:2] == ["trace", "fit"]:
            made = inside(*arguments)
            assert made.returncode == 0, f"{shlex.join(arguments)}: {made.stderr}"
        if arguments[0] == "run" and not _READERS_OWN.search(shlex.join(arguments)):
            ended = inside(*arguments, *([] if "--dry-run" in arguments else ["--dry-run"]))
            assert ended.returncode == 0, f"{shlex.join(arguments)}: {ended.stderr}"


def test_the_test_can_fail() -> None:
    assert len(refusals([["run", "--no-such-option"], ["no-such-verb"], ["suites"]])) == 2
    assert list(typed("a b # c\nd > e && f 'g h' | i")) == [["a", "b"], ["d"], ["f", "g h"], ["i"]]
    assert ["run", "quick"] in [
        arguments[:2] for arguments in commands("docs/tutorial.md", "cachemark")
    ]
    assert len([arguments for arguments in mentions("README.md") if arguments[0] == "run"]) >= 5
