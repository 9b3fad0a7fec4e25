"""Names in code: the files, pages, constants and options that comments and messages name exist."""

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import cyclopts

from cachemark.cli.program import app
from cachemark.cli.set_option import OPTIONS
from cachemark.host.process import binary_path
from tests.conftest import ROOT
from tests.docs.test_prose import anchors

_ROOMS = (
    *("src/", "engine/", "workers/", "tests/", "tools/", "benchmarks/", "conformance/"),
    *(".github/", ".ci/", "Makefile", "Containerfile", "compose.yaml", "pyproject.toml"),
)
# Output, foreign text, pages (test_prose.py reads them), and files that make their names up.
_NOT_READ = re.compile(
    r"\.(lock|md|json|csv|svg|min\.js)$|^engine/fuzz/regressions/|/golden/|/published/|/d3/"
    r"|^tests/(docs/test_(prose|site|code_names|commands)|packaging/test_ratchets)\.py$"
    r"|^tests/(report/why/test_profiles|web/test_pages|cli/test_completion_and_man)\.py$"
)
_PATH = re.compile(
    r"(?<![\w/.~$})>*-])(?:(?:src/cachemark|tests|engine|workers|docs|conformance|benchmarks|tools"
    r"|\.github)/[\w./{}$*<>@-]+|[A-Z][A-Z-]{2,}\.md\b)"
)
# Capitals in a path are placeholders, and set-ups make what begins with a dot.
_PLACEHOLDER = re.compile(r"[*{}$<>@]|/\.|/[^/]*[A-Z]{4}|_$|-$")
_BUILT = re.compile(r"^engine/(target|fuzz/(target|corpus|artifacts))|^workers/\w+/target")
_SECTION = re.compile(r"\b([A-Z]{4,})(?:\.md)?, ([`\"“]|\\\")([A-Z].+?)[`\"”\\]")
_CONSTANT = re.compile(r"(?<!`)`_?(?!NAME)([A-Z][A-Z0-9_]{3,})`(?!`)")
_SPAN = re.compile(r"(?<!`)`[^`\n]+`(?!`)")
_COMMAND = re.compile(
    r"(?<![\w/.-])(`?)cachemark(-engine)? ([a-z][a-z-]*)((?: [^`\"'|&;<>()\\\n]*)?)"
)
_OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
# A comment or a string goes on in the next line.
_GOES_ON = re.compile(r"\"\s*\n\s*f?\"|\n[ \t]*(?:#:? |//[/!]? |\* )")
# Rooms that start no program of others: each option that they name is one of cachemark's.
_OWN_OPTIONS = re.compile(r"^src/cachemark/(cli|report|analysis|model|web)/.*\.py$")


@cache
def texts() -> dict[str, str]:
    """The text of each source file that git tracks, by path."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    found: dict[str, str] = {}
    for name in listed.stdout.decode().split("\0"):
        path = ROOT / name
        if name.startswith(_ROOMS) and not _NOT_READ.search(name) and path.is_file():
            found[name] = path.read_bytes().decode(errors="replace")
    return found


def missing_paths(name: str, text: str) -> list[str]:
    """The paths and pages that a file names, but the checkout does not have."""
    folders = [ROOT / parent for parent in Path(name).parents]
    named = (found.rstrip(".").removesuffix("/") for found in _PATH.findall(text))
    return [
        f"{name}: {path}"
        for path in named
        if not _PLACEHOLDER.search(path) and not _BUILT.search(path)
        if not any((folder / path).exists() for folder in folders)
    ]


def missing_sections(name: str, text: str) -> list[str]:
    """The headings that a file quotes (`PAGE, "Heading"`), but the page does not have."""
    return [
        f"{name}: {page}, {heading}"
        for page, _, heading in _SECTION.findall(text)
        if (path := ROOT / f"{page}.md").exists()
        if not any(
            anchor.startswith(heading.lower().replace(" ", "-"))
            for anchor in anchors(path.read_text(encoding="utf-8"))
        )
    ]


def missing_constants(name: str, text: str, known: set[str]) -> list[str]:
    """The constants that a file names between backticks, but no code has."""
    return [f"{name}: {word}" for word in _CONSTANT.findall(text) if word not in known]


def wrong_commands(name: str, text: str) -> list[str]:
    """The verbs and options of commands that a file names, but the parsers do not have."""
    wrong: list[str] = []
    if "cachemark" not in text:
        return wrong
    for quoted, engine, verb, rest in _COMMAND.findall(_GOES_ON.sub(" ", text)):
        known = (engine_options() if engine else options()).get(verb)
        if known is None:
            wrong += [f"{name}: no verb {verb}"] if quoted else []
        else:
            wrong += [f"{name}: {verb} {one}" for one in _OPTION.findall(rest) if one not in known]
    return wrong


def wrong_options(name: str, text: str, known: set[str]) -> list[str]:
    """The options that a file of the package names, but no parser has."""
    return [f"{name}: {one}" for one in _OPTION.findall(text) if one not in known]


@cache
def options() -> dict[str, set[str]]:
    """The options of each verb and of its own verbs, as the command line parses them."""
    return {verb: {"--help", *_options_of(app[verb])} for verb in _verbs(app)}


def _verbs(of: cyclopts.App) -> list[str]:
    return [name for name in of if not name.startswith("-")]


def _options_of(verb: cyclopts.App) -> Iterator[str]:
    if verb.default_command:
        for argument in verb.assemble_argument_collection():
            yield from argument.names
    for name in _verbs(verb):
        yield from _options_of(verb[name])


@cache
def engine_options() -> dict[str, set[str]]:
    """The options of each verb of the engine and of its own verbs, as its help lists them."""
    return {verb: set(_OPTION.findall(_help(verb))) for verb in _listed(_help())}


def _help(*verbs: str) -> str:
    command = [binary_path(), *verbs, "--help"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if not verbs:
        return text
    # memcached's own help has no list of verbs.
    return text + "".join(_help(*verbs, verb) for verb in _listed(text))


def _listed(text: str) -> list[str]:
    _, _, behind = text.partition("\nCommands:\n")
    found = re.findall(r"^  ([a-z][\w-]+)  ", behind, re.MULTILINE)
    return [verb for verb in found if verb != "help"]


def known_options() -> set[str]:
    """Every option of both programs, and the names that `named_by_path` turns into paths."""
    both = (*options().values(), *engine_options().values())
    # Cyclopts' own two have these placeholders.
    return set().union(*both) | {f"--{name}" for name in (*OPTIONS, "no-OPTION", "empty-OPTION")}


def code_words() -> set[str]:
    """The words of all files outside of backticks, in capitals."""
    named = re.compile(r"\b_?([A-Z][A-Z0-9_]{3,})\b")
    return {word for text in texts().values() for word in named.findall(_SPAN.sub("", text))}


def test_files_and_pages_that_code_names_exist() -> None:
    assert [line for one in texts().items() for line in missing_paths(*one)] == []


def test_headings_that_code_quotes_exist() -> None:
    assert [line for one in texts().items() for line in missing_sections(*one)] == []


def test_constants_that_comments_name_exist() -> None:
    known = code_words()
    assert [line for one in texts().items() for line in missing_constants(*one, known)] == []


def test_commands_that_code_names_have_their_verbs_and_options() -> None:
    assert [line for one in texts().items() for line in wrong_commands(*one)] == []


def test_options_that_messages_name_exist() -> None:
    known = known_options()
    own = [one for one in texts().items() if _OWN_OPTIONS.search(one[0])]
    assert [line for one in own for line in wrong_options(*one, known)] == []


def test_the_test_can_fail() -> None:
    assert {"src/cachemark/cli/run.py", "Makefile", "workers/go/worker.toml"} <= texts().keys()
    named = "docs/no.md, TERMS.md, docs/tape.md, tests/{name}.py, README.md, src/clients/NAME.rs"
    assert missing_paths("src/a.py", named) == ["src/a.py: docs/no.md", "src/a.py: TERMS.md"]
    quoted = '(CONTRIBUTING, "Style") CONTRIBUTING.md, `No such section`'
    assert missing_sections("a.py", quoted) == ["a.py: CONTRIBUTING, No such section"]
    assert missing_constants("a.py", "`PICTURES` `ROOT` `_ROOT`", {"ROOT"}) == ["a.py: PICTURES"]
    commands = '"see `cachemark runs`, " \n  "cachemark run FILE --dry-run --no-such"'
    assert wrong_commands("a.py", commands) == ["a.py: no verb runs", "a.py: run --no-such"]
    # The comment goes on in the next line.
    assert wrong_commands("a.rs", "/// cachemark-engine\n/// drive --nope") == [
        "a.rs: drive --nope"
    ]
    assert wrong_options("a.py", "leave out --fill and --full", {"--fill"}) == ["a.py: --full"]
