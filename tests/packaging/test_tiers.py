"""Two tiers of tests: `make test` leaves out what is marked as slow, `make test-all` nothing."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import BEGINS_FIRST, ROOT

pytestmark = [
    pytest.mark.skipif(shutil.which("make") is None, reason="apt-get install make"),
    pytest.mark.slow("plays suites of tests, in ten processes each"),
]
EVERYTHING = "pytest -n 10 --dist loadgroup --no-loadscope-reorder"
ALONE = "pytest -n 1 --dist loadgroup --maxfail 50 --last-failed --last-failed-no-failures none"
COLLECT = "pytest --collect-only -qq"
FAILS_ONCE = 'mark = Path("ran"); ran = mark.exists(); mark.touch(); assert ran'


def commands(target: str) -> list[str]:
    """The commands of a target of the Makefile."""
    ended = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", target],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return ended.stdout.splitlines()


def pytest_commands(target: str) -> list[str]:
    """The command of the tests, and the one that plays failed tests again."""
    compiles = f"{COLLECT} >/dev/null 2>&1 || true"
    lines = [line for line in commands(target) if " pytest " in line]
    (line,) = (line for line in lines if not line.endswith(compiles))
    return re.findall(r"pytest .*?(?= \|\||; })", line)


def test_bytecode_is_made_once_before_the_tests() -> None:
    said = commands("test")
    (made,) = (number for number, line in enumerate(said) if COLLECT in line)
    (tests,) = (number for number, line in enumerate(said) if EVERYTHING in line)
    assert made < tests


def test_the_slow_tests_are_all_that_make_test_leaves_out() -> None:
    assert pytest_commands("test") == [f'{EVERYTHING} -m "not slow"', ALONE]


def test_make_test_all_runs_every_test() -> None:
    assert pytest_commands("test-all") == [EVERYTHING, ALONE]
    # Nothing in the configuration selects tests either.
    configured = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'testpaths = ["tests"]\naddopts = "-q --strict-markers --instafail"\n' in configured


@pytest.mark.parametrize(
    ("body", "passes", "closing"),
    [
        pytest.param("assert True", True, "3 passed", id="passes"),
        pytest.param(FAILS_ONCE, True, "1 failed, 2 passed|1 passed", id="fails among others"),
        pytest.param("assert False", False, "1 failed, 2 passed|1 failed", id="fails alone too"),
    ],
)
def test_what_failed_is_run_once_more_and_both_are_told(
    body: str, passes: bool, closing: str, tmp_path: Path
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "conftest.py").write_text("from tests.conftest import *\n")
    second_tries = tmp_path / ".pytest_cache" / "second-tries"
    second_tries.parent.mkdir()
    second_tries.write_text("of an earlier run\n", encoding="utf-8")
    passing = "def test_other():\n    pass\n"
    (tmp_path / "test_it.py").write_text(
        "import pytest\nfrom pathlib import Path\n\n"
        f"@pytest.mark.parametrize('name', ['a@1'])\ndef test_it(name):\n    {body}\n\n{passing}"
    )
    (tmp_path / "test_more.py").write_text(passing)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (again,) = re.findall(r"^AGAIN := .*\\\n.*\n", makefile, re.M)
    (first,) = re.findall(r"^PYTEST := .*\n", makefile, re.M)
    runs = f"RUN := {sys.executable} -m\n{first.replace('-n 10', '-n 2')}{again}"
    (tmp_path / "Makefile").write_text(f"{runs}\nall:\n\t@$(PYTEST) $(AGAIN)\n")
    ended = subprocess.run(
        ["make"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode == 0) == passes, ended.stdout
    counts = re.findall(r"((?:\d+ \w+,? ?)+) in \d", ended.stdout)
    assert "|".join(counts) == closing, ended.stdout
    kept = second_tries.read_text() if second_tries.exists() else ""
    assert kept == ("test_it.py::test_it[a@1]\n" if body == FAILS_ONCE else "")
    assert ("passed only at the second try" in ended.stdout) == second_tries.exists()


@pytest.mark.parametrize("target", ["test", "test-all"])
def test_both_run_all_of_the_engines_tests(target: str) -> None:
    assert "cd engine && env -u MAKEFLAGS -u MFLAGS cargo test --quiet --locked" in commands(target)


def test_what_must_pass_is_what_readers_are_told_to_run() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert [line for line in script.splitlines() if line.startswith("make")] == [
        "make linters",
        "make check",
        'make "${1:-test}"',
    ]


@pytest.mark.parametrize("group", BEGINS_FIRST)
def test_what_begins_first_is_a_file_or_room(group: str) -> None:
    assert list((ROOT / "tests").rglob(group))


def test_the_slow_tests_run_each_night() -> None:
    workflow = (ROOT / ".github" / "workflows" / "night.yml").read_text(encoding="utf-8")
    assert "schedule:" in workflow
    assert "- run: .ci/run test-all\n" in workflow


def run_suite(
    folder: Path, files: dict[str, str], *options: str
) -> subprocess.CompletedProcess[str]:
    """Run a suite of these test files under the configuration of this one."""
    (folder / "conftest.py").write_text("from tests.conftest import *\n", encoding="utf-8")
    for name, body in files.items():
        (folder / name).write_text(body, encoding="utf-8")
    configuration = ["-c", ROOT / "pyproject.toml", "--rootdir", folder, "-p", "no:cacheprovider"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *configuration, *options, folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("mark", "passes"), [("slow", False), ('slow("builds long")', True)])
def test_a_slow_test_needs_a_reason(mark: str, passes: bool, tmp_path: Path) -> None:
    body = f"import pytest\n\n@pytest.mark.{mark}\ndef test_it():\n    pass\n"
    ended = run_suite(tmp_path, {"test_it.py": body})
    assert (ended.returncode == 0) == passes, ended.stdout
    assert passes or "without a reason" in ended.stderr + ended.stdout


RECORDS_ITS_PROCESS = """
import os
import pytest

{mark}
@pytest.mark.parametrize("number", range(6))
def test_it(number):
    with open(__file__ + ".processes", "a") as file:
        file.write(os.environ["PYTEST_XDIST_WORKER"] + "\\n")
"""


@pytest.mark.parametrize("mark", ["", '@pytest.mark.xdist_group("some client")'])
def test_tests_of_a_file_or_a_group_share_a_process(mark: str, tmp_path: Path) -> None:
    """Otherwise each process starts workers, servers and a browser of its own for them."""
    body = RECORDS_ITS_PROCESS.format(mark=mark)
    options = EVERYTHING.replace("-n 10", "-n 2").split()[1:]
    ended = run_suite(tmp_path, {"test_one.py": body, "test_other.py": body}, *options)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    processes = [path.read_text().split() for path in sorted(tmp_path.glob("*.processes"))]
    assert [len(of_file) for of_file in processes] == [6, 6]
    assert [len(set(of_file)) for of_file in processes] == [1, 1]
    assert not mark or processes[0] == processes[1]
