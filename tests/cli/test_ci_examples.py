"""The examples of docs/ci.md, run as they are, on a small repository of a library."""

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cachemark.endpoints.client_versions import with_version
from cachemark.endpoints.clients import Client, ClientSpec, registry
from cachemark.host.process import binary_path
from tests.conftest import ROOT
from tests.docs.test_commands import blocks
from tests.workers import worker_driver

PAGE = "docs/ci.md"
HISTORY = (ROOT / "docs" / "examples" / "history.sh").read_text(encoding="utf-8")
AUTHOR = {"NAME": "test", "EMAIL": "test@localhost"}
JOBS = 4


# This makes each get of memjs slow: a branch of a small repository has it.
SLOW_FILE = "lib/memjs/memjs.js"
SLOW_METHOD = "Client.prototype.get = function(key, callback) {\n"
SLOW_WORK = "  for (const end = performance.now() + 1; performance.now() < end;) {}\n"


def set_up(client: str) -> Client:
    """The client, if its language is set up here."""
    known = registry(binary_path())[client]
    if reason := known.missing():
        pytest.skip(reason)
    return known


def go_cache() -> str:
    """The folder in which Go keeps what it has compiled for this user."""
    asked = subprocess.run(["go", "env", "GOCACHE"], capture_output=True, text=True, check=True)
    return asked.stdout.strip()


def comparison(client: str) -> str:
    """The page's comparison of two source trees, with another client."""
    (text,) = (text for language, text in blocks(PAGE) if language == "sh" and "@./base" in text)
    return text.replace("python/pymemcache", client).replace("python", client.partition("/")[0])


def shell(folder: Path, text: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run an example as a CI job does, with `cachemark` on PATH."""
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    program = programs / "cachemark"
    # A sitting is enough of a history; a comparison ends when it is settled.
    program.write_text(
        '#!/bin/sh\n[ "$1" != run ] || set -- "$@" --blocks 1 --server embedded\n'
        f'exec {sys.executable} -m cachemark "$@"\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    authors = {f"GIT_{who}_{key}": AUTHOR[key] for who in ("AUTHOR", "COMMITTER") for key in AUTHOR}
    environment = {
        **os.environ,
        **authors,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        **variables,
    }
    return subprocess.run(
        ["sh", "-e", "-c", text],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def history_job(folder: Path, name: str) -> subprocess.Popen[str]:
    """Start the history's example in a folder of its own, on a runner without a user name.

    Its run is made up: one file. Before a push it prints a line, and waits for one or for the end.
    """
    job = folder / name
    (job / "programs").mkdir(parents=True)
    for program, text in {
        "cachemark": f'[ "$1" = history ] || {{ mkdir history/{name}; echo >history/{name}/run; }}',
        "git": f'case "$*" in *push*) echo pushes; read _;; esac\nexec {shutil.which("git")} "$@"',
    }.items():
        (job / "programs" / program).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (job / "programs" / program).chmod(0o755)
    return subprocess.Popen(
        ["sh", "-e", "-c", HISTORY],
        cwd=job,
        env={
            "PATH": f"{job / 'programs'}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(job),
            "GIT_CONFIG_NOSYSTEM": "1",
            "REPOSITORY": str(folder / "remote.git"),
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def repository(folder: Path, library: Path) -> None:
    """A repository of memjs with the branches `main` and `slow`, and a checkout of both."""
    origin = folder / "origin"
    shutil.copytree(library, origin)
    git = "git -C origin -c init.defaultBranch=main"
    made = shell(folder, f"{git} init --quiet; {git} add .; {git} commit --quiet -m base")
    assert made.returncode == 0, made.stderr
    source = origin / SLOW_FILE
    text = source.read_text(encoding="utf-8")
    assert text.count(SLOW_METHOD) == 1
    source.write_text(text.replace(SLOW_METHOD, SLOW_METHOD + SLOW_WORK), encoding="utf-8")
    clone = "git clone --quiet --branch"
    made = shell(
        folder,
        f"{git} checkout --quiet -b slow; {git} commit --quiet -a -m slow; "
        f"{clone} main origin base; {clone} slow origin head",
    )
    assert made.returncode == 0, made.stderr


@pytest.mark.slow("plays six sittings")
def test_a_slower_head_fails_the_job_and_writes_the_comment(tmp_path: Path) -> None:
    needs = Path(set_up("node/memjs").needs)
    repository(tmp_path, needs.parent)
    ended = shell(tmp_path, comparison("node/memjs"), XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "Worse, and the estimate is beyond the margin of 5 %" in ended.stdout
    comment = (tmp_path / "answer.md").read_text(encoding="utf-8")
    assert "node/memjs@./head" in comment
    assert "worse" in comment


@pytest.mark.slow("builds two workers")
def test_a_worker_is_built_with_the_named_source_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = set_up("go/gomemcache")
    asked = subprocess.run(
        ["go", "list", "-m", "-f", "{{.Dir}}", known.package],
        cwd=Path(known.install_version).parent,
        capture_output=True,
        text=True,
        check=True,
    )
    # Go's own cache has the rest of the worker compiled.
    monkeypatch.setenv("GOCACHE", go_cache())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("base", "head"):
        tree = tmp_path / name
        shutil.copytree(asked.stdout.strip(), tree, copy_function=shutil.copyfile)
        spec = ClientSpec(text=f"{known.id}@{tree}", client=known, version=str(tree))
        client = with_version(spec, lambda _: None).client
        with worker_driver.started(client) as (_, ready):
            assert (ready.client, ready.library_version) == (known.id, str(tree))


@pytest.mark.slow("plays a sitting, twice")
def test_a_history_grows_in_a_branch(tmp_path: Path) -> None:
    """Each job begins without the clone of the job before."""
    shell(tmp_path, "git init --quiet --bare remote.git")
    for job in ("first", "second"):
        (tmp_path / job).mkdir()
        ended = shell(tmp_path / job, HISTORY, REPOSITORY=str(tmp_path / "remote.git"))
        assert ended.returncode == 0, ended.stdout + ended.stderr
    runs = sorted(path.name for path in (tmp_path / "second" / "history").glob("2*"))
    assert len(runs) == 2
    assert all(run in ended.stdout for run in runs)
    log = shell(tmp_path, "git -C remote.git log --format=%s --name-only benchmarks").stdout
    assert log.count("a run of pymemcache") == 2
    assert log.count("outcomes.jsonl") == 2
    assert "index.sqlite" not in log


@pytest.mark.parametrize("branch", ["none", "empty"])
def test_jobs_that_push_at_once_lose_no_run(branch: str, tmp_path: Path) -> None:
    """All have made their commit before the first of them pushes it."""
    shell(tmp_path, "git init --quiet --bare remote.git")
    if branch == "empty":
        made = shell(
            tmp_path,
            "git init --quiet --initial-branch benchmarks first; "
            "git -C first commit --quiet --allow-empty --message begin; "
            "git -C first push --quiet ../remote.git benchmarks",
        )
        assert made.returncode == 0, made.stderr
    names = [f"job{number}" for number in range(JOBS)]
    with contextlib.ExitStack() as stack:
        jobs = [stack.enter_context(history_job(tmp_path, name)) for name in names]
        for job in jobs:
            assert job.stdout is not None
            assert "pushes\n" in iter(job.stdout.readline, "")
        for job in jobs:
            assert job.stdin is not None
            job.stdin.close()
        said = [job.stdout.read() for job in jobs if job.stdout is not None]
    assert [job.returncode for job in jobs] == [0] * JOBS, said
    kept = shell(tmp_path, "git -C remote.git ls-tree -r --name-only benchmarks").stdout
    assert kept.split() == [f"{name}/run" for name in names]
