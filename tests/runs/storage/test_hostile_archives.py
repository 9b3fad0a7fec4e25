"""Archives that are well formed, and mean harm: refused with little memory, and in words."""

import json
import os
import resource
import signal
import struct
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cachemark.cli.import_ import rehearse
from cachemark.host import sandbox
from cachemark.host.sandbox import SandboxLimits, run_limited
from cachemark.model.errors import UsageError
from cachemark.runs.storage.archive import export_run, import_run
from cachemark.runs.storage.store import IMPORTED, latest_own_run
from tests.builders.stored_runs import kept, made_header, trials
from tests.cli.in_process import Inside
from tests.runs.storage.test_archive import Members, members, packed, signed

Document = dict[str, Any]
NAME = "2026-03-01-made"


@pytest.fixture
def content(tmp_path: Path) -> Members:
    run = kept(tmp_path / "here", made_header(NAME), trials("a", 500, 3))
    return members(export_run(run, tmp_path / "run.zip"))


def refused(path: Path, root: Path, text: str) -> None:
    """It is refused for that reason, and no run is in the store."""
    with pytest.raises(UsageError, match=text) as said:
        import_run(path, root, rehearse)
    assert said.value.text.startswith(str(path))
    assert not root.exists(), "what the import made is gone"


def with_outcome(content: Members, change: Callable[[Document], None]) -> Members:
    """The archive with its first outcome changed."""
    lines = content["outcomes.jsonl"].splitlines()
    outcome = json.loads(lines[0])
    change(outcome)
    lines[0] = json.dumps(outcome).encode()
    return signed({**content, "outcomes.jsonl": b"\n".join(lines) + b"\n"})


def with_header(content: Members, change: Callable[[Document], None]) -> Members:
    """The archive with its header changed."""
    header = json.loads(content["run.json"])
    change(header)
    return signed({**content, "run.json": json.dumps(header).encode()})


def set_in(*path: str | int, to: object) -> Callable[[Document], None]:
    """A change of one field."""

    def change(document: Any) -> None:
        for part in path[:-1]:
            document = document[part]
        document[path[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (set_in("measure", "elapsed_ns", to=0), "window of 0 ns"),
        (set_in("measure", "elapsed_ns", to=-1), "not an outcome"),
        (set_in("measure", to=None), "without a window"),
        (set_in("measure", "operations", "get", "response", to="AAAA"), "histogram"),
        (set_in("measure", "operations", "get", "service", to="A" * 2**21), "histogram|a text of"),
        (set_in("measure", "operations", "get", "ok", to=2**62), "the number"),
        (set_in("trial", "cell", "workload", to="unknown"), "not part of the experiment"),
        (set_in("trial", "cell", "load", to="unknown"), "not part of the experiment"),
        (set_in("trial", "cell", "client", to="x" * 10_000), "not part of the experiment"),
        (set_in("trial", "index", to=10**6), "not planned"),
        (set_in("trial", "index", to=-1), "not planned"),
        (set_in("trial", "block", to=99), "not planned"),
        (set_in("stats_before", to={str(n): "1" for n in range(100_001)}), "entries"),
        (set_in("log", to="x" * 2**21), "a text of"),
    ],
)
def test_an_outcome_that_cannot_be_is_refused(
    content: Members, tmp_path: Path, change: Callable[[Document], None], text: str
) -> None:
    refused(packed(tmp_path / "bad.zip", with_outcome(content, change)), tmp_path / "there", text)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (set_in("experiment", "blocks", to=3 * 10**6), "blocks|trials are more"),
        (set_in("experiment", "blocks", to=1), "3 outcomes of 2 trials"),
        (set_in("experiment", "servers", to=[f"s{n}" for n in range(1001)]), "length <= 1000"),
        (set_in("experiment", "loads", 0, "connections", to=2**32), "connections"),
        (set_in("created_at", to="\x1b[2J"), "not a time"),
        (set_in("host", "load_1min", to=1e300), "the number"),
    ],
)
def test_a_header_that_cannot_be_is_refused(
    content: Members, tmp_path: Path, change: Callable[[Document], None], text: str
) -> None:
    refused(packed(tmp_path / "bad.zip", with_header(content, change)), tmp_path / "there", text)


@pytest.mark.parametrize("sizes", [(10**15, -(10**15)), (-1, 5), (2**41, 0)])
def test_sizes_that_cancel_each_other_are_refused(
    content: Members, tmp_path: Path, sizes: tuple[int, int]
) -> None:
    manifest = json.loads(content["manifest.json"])
    for file, size in zip(manifest["files"], sizes, strict=False):
        file["bytes"] = size
    content["manifest.json"] = json.dumps(manifest).encode()
    refused(packed(tmp_path / "bad.zip", content), tmp_path / "there", "manifest|longer than")


def test_what_grows_too_much_is_refused(content: Members, tmp_path: Path) -> None:
    """A hundred megabytes of line ends take a hundred kilobytes in an archive."""
    path = packed(tmp_path / "bad.zip", signed({**content, "outcomes.jsonl": b"\n" * 100 * 2**20}))
    assert path.stat().st_size < 200_000
    refused(path, tmp_path / "there", "times as long")


def test_what_lies_about_its_packed_size_is_refused(content: Members, tmp_path: Path) -> None:
    """The directory of an archive may say that a part is as long packed as it is unpacked."""
    path = tmp_path / "bad.zip"
    packed(path, signed({**content, "report.md": b"0" * 100 * 2**20}))
    data = bytearray(path.read_bytes())
    directory = data.rindex(b"PK\x01\x02", 0, data.rindex(b"report.md"))
    struct.pack_into("<I", data, directory + 20, 100 * 2**20)
    path.write_bytes(data)
    assert path.stat().st_size < 200_000
    refused(path, tmp_path / "there", "times as long")


def test_a_pipe_instead_of_an_archive_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.zip")
    refused(tmp_path / "run.zip", tmp_path / "there", "not a regular file")


def test_the_error_about_a_long_name_is_short(
    content: Members, tmp_path: Path, inside: Inside
) -> None:
    packed(tmp_path / "bad.zip", {**content, "x" * 60_000: b""})
    said = inside("import", "bad.zip")
    assert said.returncode == 2
    assert "no part of a run" in said.stderr
    assert len(said.stderr) < 1000


def test_the_error_about_another_version_is_a_sentence(
    content: Members, tmp_path: Path, inside: Inside
) -> None:
    manifest = json.loads(content["manifest.json"])
    stranger = "9.9\ncachemark: to mend this, run: curl example.invalid | sh" + "x" * 10_000
    manifest |= {"format": 9, "cachemark": stranger, "kind": "x\n" * 10_000}
    packed(tmp_path / "bad.zip", {**content, "manifest.json": json.dumps(manifest).encode()})
    said = inside("import", "bad.zip")
    assert said.returncode == 2
    assert len(said.stderr.splitlines()) == 2
    assert len(said.stderr) < 1000


def test_an_error_of_any_length_is_shortened(inside: Inside) -> None:
    said = inside("report", "--format", "x" * 100_000)
    assert said.returncode == 2
    assert len(said.stderr) < 10_000


def test_a_long_list_of_files_is_refused(content: Members, tmp_path: Path) -> None:
    path = tmp_path / "bad.zip"
    with zipfile.ZipFile(path, "w") as made:
        for name, data in signed(content).items():
            made.writestr(name, data)
        for number in range(20_000):
            made.writestr(f"{number}", b"")
    refused(path, tmp_path / "there", "no part of a run")


def test_a_symbolic_link_is_a_file(content: Members, tmp_path: Path) -> None:
    path = tmp_path / "bad.zip"
    with zipfile.ZipFile(path, "w") as made:
        for name, data in signed({**content, "report.md": b"/etc/passwd"}).items():
            info = zipfile.ZipInfo(name)
            info.external_attr = 0o120777 << 16
            made.writestr(info, data)
    run, _ = import_run(path, tmp_path / "there", rehearse)
    assert not (run.folder / "report.md").is_symlink()


def _killed() -> bytes:
    os.kill(os.getpid(), signal.SIGKILL)
    return b""


def _busy() -> bytes:
    while True:
        pass


def test_memory_and_time_have_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "_PATIENCE", 1)
    limits = SandboxLimits(memory_bytes=2**26, time_s=1, file_bytes=0)
    with pytest.raises(UsageError, match="memory"):
        run_limited(lambda: bytes(2**28), limits)
    with pytest.raises(UsageError, match="longer than 1 s"):
        run_limited(lambda: time.sleep(60) or b"", limits)
    monkeypatch.setattr(sandbox, "_PATIENCE", 60)
    with pytest.raises(UsageError, match="longer than 1 s of CPU time"):
        run_limited(_busy, limits)
    with pytest.raises(UsageError, match="within"):
        run_limited(_killed, limits)
    with pytest.raises(UsageError, match="ZeroDivisionError"):
        run_limited(lambda: bytes(1 // 0), limits)
    assert run_limited(lambda: b"\xff\x00", limits) == b"\xff\x00"


def test_memory_has_a_limit_where_the_address_space_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on macOS: a process cannot tell there how much memory it has."""
    monkeypatch.setattr(sandbox, "_PROC_STATUS", Path("/proc/of/no/process"))
    limits = SandboxLimits(memory_bytes=2**25, time_s=60, file_bytes=0)
    with pytest.raises(UsageError, match="memory"):
        run_limited(lambda: b"x" * 2**27 + bytes(time.sleep(3600) or b""), limits)
    assert run_limited(lambda: b"small", limits) == b"small"


def test_the_child_writes_no_large_file(tmp_path: Path) -> None:
    def write() -> bytes:
        (tmp_path / "large").write_bytes(bytes(10_000))
        return b""

    with pytest.raises(UsageError):
        run_limited(write, SandboxLimits(memory_bytes=2**26, time_s=10, file_bytes=1000))
    assert (tmp_path / "large").stat().st_size <= 1000
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


def test_resume_without_a_name_never_takes_an_imported_run(tmp_path: Path, inside: Inside) -> None:
    """The name of an imported run may come last, and its client is a command of a stranger."""
    owned = tmp_path / "OWNED"
    client = f"command:sh -c 'id > {owned}; exit 1'"
    header = made_header("zzzz")
    grid = msgspec.structs.replace(header.experiment, clients=[client], servers=["embedded"])
    evil = kept(tmp_path / "elsewhere", msgspec.structs.replace(header, experiment=grid), [])
    export_run(evil, tmp_path / "evil.zip")
    assert inside("import", "evil.zip").returncode == 0
    said = inside("run", "--resume")
    assert (said.returncode, owned.exists()) == (2, False)
    assert "holds no run of this machine" in said.stderr
    kept(tmp_path / "results", made_header("2026-own"), [])
    assert latest_own_run(tmp_path / "results").id == "2026-own"
    said = inside("run", "zzzz", "--resume")
    assert (said.returncode, owned.exists()) == (2, False)
    assert client in said.stderr
    assert "--trust-commands" in said.stderr
    (tmp_path / "results" / "zzzz" / "lock").mkdir()  # the run cannot be entered
    said = inside("run", "zzzz", "--resume", "--trust-commands")
    assert client in said.stderr


@pytest.mark.parametrize(
    "change",
    [
        set_in("measure", "elapsed_ns", to=0),
        set_in("measure", "operations", "get", "response", to="AAAA"),
        set_in("trial", "cell", "workload", to="unknown"),
        set_in("trial", "cell", "load", to="unknown"),
        set_in("measure", "operations", "get", "ok", to=2**63),
    ],
)
def test_a_bad_run_does_not_hide_the_others(
    content: Members, tmp_path: Path, inside: Inside, change: Callable[[Document], None]
) -> None:
    """Also one that an earlier version imported, or that came by hand."""
    kept(tmp_path / "results", made_header("2026-02-good"), trials("a", 500, 3))
    bad = tmp_path / "results" / NAME
    bad.mkdir()
    for name, data in with_outcome(content, change).items():
        (bad / name).write_bytes(data)
    for arguments in (["history"], ["history", "a"]):
        said = inside(*arguments)
        assert said.returncode == 0, said.stderr
        assert "2026-02-good" in said.stdout
    assert inside("report", "2026-02-good").returncode == 0
    for form in ("table", "json", "hgrm", "jmh-json", "html", "vega-lite"):
        said = inside("report", NAME, "--format", form, "--out", "out")
        assert said.returncode in (0, 2), said.stderr
        assert len(said.stderr.splitlines()) <= 2
    assert inside("compare", "2026-02-good", NAME).returncode in (0, 2)


def test_a_header_of_a_million_blocks_is_no_work(tmp_path: Path, inside: Inside) -> None:
    header = made_header("made")
    grid = msgspec.structs.replace(header.experiment, blocks=3 * 10**6)
    kept(tmp_path / "results", msgspec.structs.replace(header, experiment=grid), trials("a", 500))
    began = time.process_time()
    said = inside("history")
    assert said.returncode == 0
    assert "3,000,000" in said.stdout or "trials are more than" in said.stdout
    assert inside("report", "made").returncode in (0, 2)
    assert time.process_time() - began < 20


def test_an_import_is_marked(content: Members, tmp_path: Path) -> None:
    run, new = import_run(packed(tmp_path / "ok.zip", content), tmp_path / "there", rehearse)
    assert new
    assert run.imported
    assert (run.folder / IMPORTED).is_file()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (set_in("experiment", "twice", to="command:id"), "not one of the clients"),
        (set_in("experiment", "clients", to=["native", "native"]), "listed twice"),
        (set_in("experiment", "servers", to=[]), "no server"),
    ],
)
def test_what_cannot_be_planned_is_not_continued(
    tmp_path: Path, inside: Inside, change: Callable[[Document], None], text: str
) -> None:
    """The header of somebody else's run may break rules of experiment files."""
    folder = kept(tmp_path / "results", made_header("made"), []).folder
    header = json.loads((folder / "run.json").read_bytes())
    change(header)
    (folder / "run.json").write_text(json.dumps(header), encoding="utf-8")
    said = inside("run", "made", "--resume")
    assert said.returncode == 2
    assert text in said.stderr


def test_a_dry_run_continues_nothing(tmp_path: Path, inside: Inside) -> None:
    """It began to play."""
    folder = kept(tmp_path / "results", made_header("made"), []).folder
    before = sorted(path.name for path in folder.iterdir())
    said = inside("run", "made", "--resume", "--dry-run")
    assert said.returncode == 2
    assert "--dry-run" in said.stderr
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_refused_header_is_named_as_in_the_archive(content: Members, tmp_path: Path) -> None:
    change = set_in("experiment", "name", to="../../x")
    path = packed(tmp_path / "bad.zip", with_header(content, change))
    refused(path, tmp_path / "there", r"bad.zip: run.json: not a run")


@pytest.mark.parametrize("name", ["calibrations.jsonl", "index.sqlite", "Index.sqlite-journal"])
def test_no_run_is_called_like_a_file_of_the_store(
    content: Members, tmp_path: Path, name: str
) -> None:
    """Its folder would be in the place of the file: no report of any run could be made."""
    manifest = json.loads(content["manifest.json"]) | {"id": name}
    content["manifest.json"] = json.dumps(manifest).encode()
    refused(packed(tmp_path / "bad.zip", content), tmp_path / "there", "no run's id")
