"""CONTRIBUTING.md, `Add a client`, done in every language: a source file and a row, no more.

Each language's folder is copied, gets a toy client by the documented steps, is set up, conforms,
and loses the client again. Two more clients have a mistake of their own: that is never a failure
of the library.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cachemark.checks.conformance import WorkerDriver, checks, find
from cachemark.endpoints.clients import ClientSpec, registry, workers_folder
from cachemark.endpoints.servers import parse_spec, running
from cachemark.host import process
from cachemark.model.errors import TrialError, UnsupportedError
from cachemark.model.protocol import Failure, Ready, RunRequest
from tests.conftest import ROOT
from tests.workers import worker_driver

pytestmark = pytest.mark.skipif(
    shutil.which("memcached") is None, reason="apt-get install memcached"
)
_TOYS = Path(__file__).parent / "toy_clients"
_SLOW_TO_BUILD = {
    "java": "Maven builds the worker's core, then each client",
    "rust": "cargo builds the whole worker, optimised",
}
_CASES = (
    "get, half there",
    "set",
    "large values come back whole",
    "four callers",
    "a wrong byte is a wrong value",
    "silence is a timeout and no miss",
    "a late reply answers no other call",
    "an error reply is an error",
    "an error reply counts as its kind",
    "a server that is killed",
)
_ROW = """
[[client]]
name = "{name}"
runtimes = ["{language}"]
concurrency = "{concurrency}"
note = "a socket and no library"
"""


class Language(msgspec.Struct, frozen=True, kw_only=True):
    """Where a client's files go, what a caller is, and which mistakes can be made."""

    name: str
    files: dict[str, str]
    concurrency: str = "threads"
    mistakes: tuple[str, ...] = ("call", "verification")


# The table of CONTRIBUTING.md: `NAME` is the client's name, `Name` the same with a capital.
LANGUAGES = [
    Language(name="c", files={"clients/NAME.c": "toy.c"}, mistakes=()),
    Language(name="go", files={"NAME_client.go": "toy_client.go"}),
    Language(
        name="java",
        files={"clients/NAME/Name.java": "Toy.java", "clients/NAME/pom.xml": "pom.xml"},
    ),
    Language(name="node", files={"clients/NAME.mjs": "toy.mjs"}, concurrency="tasks"),
    Language(name="perl", files={"clients/NAME.pm": "toy.pm"}, concurrency="processes"),
    Language(name="php", files={"clients/NAME.php": "toy.php"}, concurrency="forks"),
    Language(name="python", files={"clients/NAME.py": "toy.py"}),
    Language(name="ruby", files={"clients/NAME.rb": "toy.rb"}),
    Language(name="rust", files={"src/clients/NAME.rs": "toy.rs"}),
]
# Files that the test need not build again: other clients, and leftovers of debugging.
_LEFT_OUT = {
    "java": ("caffeine", "elasticache", "folsom", "spymemcached", "xmemcached", "target"),
    "rust": ("async_memcached.rs", "memcache.rs", "moka.rs", "debug"),
    "python": (".venv-pypy",),
}


def languages(*names: str) -> list[Any]:
    """Each language as a parameter, or some; one process has all tests of a language."""
    return [
        pytest.param(each, id=each.name, marks=marks(each.name))
        for each in LANGUAGES
        if not names or each.name in names
    ]


def marks(name: str) -> list[pytest.MarkDecorator]:
    """One process has all tests of a language; two languages' tests are slow."""
    found = [pytest.mark.xdist_group(f"add to {name}")]
    if name in _SLOW_TO_BUILD:
        found.append(pytest.mark.slow(_SLOW_TO_BUILD[name]))
    return found


@pytest.fixture(scope="module", params=languages())
def language(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Generator[Language]:
    """A language's folder, copied, with the toy client and those with a mistake, set up."""
    language: Language = request.param
    built = registry(process.binary_path())[f"{language.name}/null"]
    if missing := built.missing():
        pytest.skip(f"{missing}: {built.setup}")
    workers = tmp_path_factory.mktemp("workers")
    folder = workers / language.name
    left_out = shutil.ignore_patterns(*_LEFT_OUT.get(language.name, ()))
    shutil.copytree(ROOT / "workers" / language.name, folder, symlinks=True, ignore=left_out)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CACHEMARK_WORKERS", str(workers))
        add(folder, language, "toy")
        for mistake in language.mistakes:
            add(folder, language, f"toy{mistake}", mistake)
        set_up(folder)
        yield language


def add(folder: Path, language: Language, name: str, mistake: str = "") -> None:
    """The source files and the row of a client."""
    for place, source in language.files.items():
        path = folder / place.replace("NAME", name).replace("Name", name.capitalize())
        text = (_TOYS / source).read_text(encoding="utf-8")
        text = text.replace("toy", name).replace("Toy", name.capitalize())
        if mistake:
            where = f"in a {mistake}" if mistake == "call" else f"in {mistake}"
            text = re.sub(rf"(?:#|//) {where}: (.*)", r"\1", text)
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    with (folder / "worker.toml").open("a", encoding="utf-8") as rows:
        rows.write(_ROW.format(name=name, language=language.name, concurrency=language.concurrency))


def set_up(folder: Path) -> None:
    """The command that `cachemark setup LANGUAGE` runs."""
    tools = {**os.environ, "PATH": f"{ROOT / '.tools' / 'bin'}:{os.environ['PATH']}"}
    ended = subprocess.run(
        [folder / "setup"], cwd=folder, env=tools, capture_output=True, text=True, check=False
    )
    if ended.returncode == 3:
        pytest.skip(ended.stderr)
    assert ended.returncode == 0, ended.stderr


def spec(language: Language, name: str) -> ClientSpec:
    client = registry(process.binary_path())[f"{language.name}/{name}"]
    return ClientSpec(text=client.id, client=client)


def test_it_conforms(language: Language, tmp_path: Path) -> None:
    chosen = checks()
    with WorkerDriver(spec(language, "toy"), tmp_path) as bench:
        assert bench.wires == ["text"]
        for name in _CASES:
            for finding in find(bench, name, chosen[name]):
                assert finding.state in ("passed", "not applicable"), finding


# In C there are no exceptions: the process ends.
_HAVE_EXCEPTIONS = [each.name for each in LANGUAGES if each.mistakes]


@pytest.mark.parametrize("language", languages(*_HAVE_EXCEPTIONS), indirect=True, scope="module")
def test_a_mistake_fails_conformance_with_its_traceback(language: Language, tmp_path: Path) -> None:
    name = "get, half there"
    with WorkerDriver(spec(language, "toycall"), tmp_path) as driver:
        (result,) = find(driver, name, checks()[name])
    assert result.state == "failed"
    assert "internal" in result.text
    assert "toycall" in result.text.partition("\n")[2].lower(), result.text


@pytest.mark.parametrize("language", languages(*_HAVE_EXCEPTIONS), indirect=True, scope="module")
@pytest.mark.parametrize("mistake", ["call", "verification"])
def test_a_mistake_of_its_own_is_an_internal_error(
    mistake: str, language: Language, tmp_path: Path
) -> None:
    """It ends the run, and says where it is, in the answer and on stderr."""
    arguments = ("--keys", "20", "--prefill", "0.5", "--mix", "get=1", "--ops", "200")
    tape = worker_driver.write_tape(tmp_path, *arguments, "--distribution", "sequential")
    client = spec(language, f"toy{mistake}").client
    with (
        running(parse_spec("memcached:threads=1,memory=16")) as server,
        worker_driver.started(client) as (worker, _),
    ):
        setup = worker_driver.patient(servers=server.addresses, wire="text", tape=str(tape))
        assert isinstance(worker_driver.ask(worker, setup), Ready)
        assert worker_driver.play(worker, RunRequest(phase="prefill")).operations["set"].ok == 10
        worker.send(RunRequest(phase="measure", ops=200))
        answer = worker_driver.finish(worker)
        assert isinstance(answer, Failure), answer
        assert answer.kind == "internal", answer
        assert f"toy{mistake}" in answer.text.lower() or "verify" in answer.text.lower(), answer
        assert worker.log_tail()
        # It is heard all the same.
        assert isinstance(worker_driver.ask(worker, setup), Ready)


# A first line of a client file: what its own mistake says, and which library it lacks.
_BROKEN = {
    "node": "import { nothing } from '../verify.mjs';",
    "perl": "undefined_function();",
    "php": "undefined_function();",
    "python": "from verify import nothing",
    "ruby": "undefined_name",
}
_LACKING = {
    "node": "import nothing from 'no-such-library';",
    "python": "import no_such_library",
    "ruby": "require 'no-such-library'",
}


def with_first_line(language: Language, name: str, line: str) -> ClientSpec:
    """The toy client under another name, with a line before its first import."""
    folder = workers_folder() / language.name
    add(folder, language, name)
    path = folder / next(iter(language.files)).replace("NAME", name)
    text = path.read_text(encoding="utf-8")
    first = re.search(
        r"^(import|from __future__.*\n|require|use v5.36.*\n|declare.*\n)", text, re.M
    )
    assert first is not None
    at = first.end() if first[0].endswith("\n") else first.start()
    path.write_text(f"{text[:at]}{line}\n{text[at:]}", encoding="utf-8")
    return spec(language, name)


# In the other languages the compiler shows it.
@pytest.mark.parametrize("language", languages(*_BROKEN), indirect=True, scope="module")
def test_a_broken_import_shows_its_own_error(language: Language) -> None:
    """It is not taken for a library that is not installed."""
    client = with_first_line(language, "toybroken", _BROKEN[language.name]).client
    with pytest.raises(TrialError) as caught, worker_driver.started(client):
        pass
    assert "internal" in str(caught.value)
    assert re.search("nothing|undefined", str(caught.value)), caught.value


# In the other languages the set-up needs the library, or the client file names it otherwise.
@pytest.mark.parametrize("language", languages(*_LACKING), indirect=True, scope="module")
def test_a_missing_library_is_unsupported(language: Language) -> None:
    client = with_first_line(language, "toylacking", _LACKING[language.name]).client
    with (
        pytest.raises(UnsupportedError, match=r"no.such.library"),
        worker_driver.started(client),
    ):
        pass


# What set-up takes for its last result, where it compiles.
_BUILT = {"c": ("worker", ".built"), "go": ("worker", ".stamp")}


def test_it_is_gone_when_file_and_row_are(language: Language) -> None:
    """Whoever takes a client out has nothing else to change. Other tests find it again."""
    toy = spec(language, "toy").client
    folder = workers_folder() / language.name
    rows = (folder / "worker.toml").read_bytes()
    taken = take_out(folder, language)
    assert toy.id not in registry(process.binary_path())
    # Quicker to put back than to build again.
    built = [folder / name for name in _BUILT.get(language.name, ())]
    for path in built:
        path.rename(f"{path}.kept")
    if language.name not in _SLOW_TO_BUILD:
        set_up(folder)
        ended = subprocess.run(toy.command, input="", capture_output=True, text=True, check=False)
        assert ended.returncode != 0
    for path, source in taken.items():
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(source)
    (folder / "worker.toml").write_bytes(rows)
    for path in built:
        Path(f"{path}.kept").replace(path)
    if language.name not in _SLOW_TO_BUILD:
        set_up(folder)


def take_out(folder: Path, language: Language) -> dict[Path, bytes]:
    """Remove all toys, and say what was in their files."""
    shutil.copy(ROOT / "workers" / language.name / "worker.toml", folder)
    taken: dict[Path, bytes] = {}
    for place in language.files:
        for name in ("toy", "toycall", "toyverification", "toybroken", "toylacking"):
            path = folder / place.replace("NAME", name).replace("Name", name.capitalize())
            if path.exists():
                taken[path] = path.read_bytes()
                path.unlink()
            if path.parent.name == name:
                shutil.rmtree(path.parent, ignore_errors=True)
    return taken
