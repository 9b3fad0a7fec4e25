"""A run as one file: there and back, and everything that must not get in."""

import hashlib
import json
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cachemark.model.errors import UsageError
from cachemark.runs.storage import archive
from cachemark.runs.storage.archive import export_run, import_run
from cachemark.runs.storage.store import IMPORTED, Run, open_run
from tests.builders.stored_runs import kept, made_header, trials
from tests.cli.in_process import Inside

Members = dict[str, bytes]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    found = kept(tmp_path / "here", made_header("2026-03-01-made"), trials("a", 500, 3))
    (found.folder / "report.md").write_text("# made\n", encoding="utf-8")
    return found


@pytest.fixture
def exported(run: Run, tmp_path: Path) -> Path:
    return export_run(run, tmp_path / "run.zip")


def files(root: Path) -> dict[str, bytes]:
    """Everything below a folder, by its name there."""
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def without_mark(found: dict[str, bytes]) -> dict[str, bytes]:
    """The files of an imported run, but for the one that says that it was imported."""
    return {name: data for name, data in found.items() if name != IMPORTED}


def members(path: Path) -> Members:
    with zipfile.ZipFile(path) as found:
        return {name: found.read(name) for name in found.namelist()}


def packed(path: Path, content: Members, packing: int = zipfile.ZIP_DEFLATED) -> Path:
    """An archive of any content."""
    with zipfile.ZipFile(path, "w", packing) as made:
        for name, data in content.items():
            made.writestr(name, data)
    return path


def signed(content: Members) -> Members:
    """The members with a manifest that agrees with them."""
    manifest = json.loads(content["manifest.json"])
    manifest["files"] = [
        {"name": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in content.items()
        if name != "manifest.json"
    ]
    return {**content, "manifest.json": json.dumps(manifest).encode()}


def refused(path: Path, root: Path, text: str) -> None:
    """It is refused for that reason, and leaves nothing behind."""
    before = files(root) if root.exists() else {}
    around = set(root.parent.iterdir())
    with pytest.raises(UsageError, match=text):
        import_run(path, root)
    assert files(root) == before
    assert set(root.parent.iterdir()) - around <= {root}
    assert not (root / ".importing").exists()


def test_there_and_back(run: Run, exported: Path, tmp_path: Path) -> None:
    found, new = import_run(exported, tmp_path / "there")
    assert new
    assert found.header == run.header
    assert found.outcomes() == run.outcomes()
    there = files(tmp_path / "there" / run.id)
    assert json.loads(there.pop(IMPORTED))["file"] == exported.name
    assert there == {name: data for name, data in files(run.folder).items() if name != "lock"}
    with open_run(run.id, tmp_path / "there") as again:
        again.append([trials("a", 500, 4)[3]])  # what was imported is a run like any other


def test_lzma_archive_is_imported_whole(run: Run, exported: Path, tmp_path: Path) -> None:
    made = export_run(run, tmp_path / "lzma.zip", zipfile.ZIP_LZMA)
    packings = {member.compress_type for member in zipfile.ZipFile(made).infolist()}
    assert packings == {zipfile.ZIP_LZMA}
    assert members(made) == members(exported)
    found, new = import_run(made, tmp_path / "there")
    assert new
    assert export_run(found, tmp_path / "again.zip").read_bytes() == exported.read_bytes()


def test_the_same_run_gives_the_same_bytes(run: Run, exported: Path, tmp_path: Path) -> None:
    again = export_run(run, tmp_path / "again.zip")
    assert again.read_bytes() == exported.read_bytes()
    elsewhere, _ = import_run(exported, tmp_path / "there")
    assert export_run(elsewhere, tmp_path / "third.zip").read_bytes() == exported.read_bytes()


def test_a_second_import_changes_nothing(run: Run, exported: Path, tmp_path: Path) -> None:
    root = tmp_path / "there"
    assert import_run(exported, root)[1] is True
    before = files(root)
    assert import_run(exported, root)[1] is False
    assert files(root) == before
    assert run.outcomes()


def test_another_run_of_that_name_stays_as_it_is(run: Run, exported: Path, tmp_path: Path) -> None:
    root = tmp_path / "there"
    kept(root, run.header, trials("b", 500, 2))
    refused(exported, root, "never overwritten")


def test_a_folder_that_is_no_run_stays_as_it_is(run: Run, exported: Path, tmp_path: Path) -> None:
    root = tmp_path / "there"
    (root / run.id).mkdir(parents=True)
    refused(exported, root, "is there already, and no run")


def test_nothing_is_overwritten_by_an_export(run: Run, exported: Path, tmp_path: Path) -> None:
    before = exported.read_bytes()
    with pytest.raises(UsageError, match="is there already"):
        export_run(run, exported)
    assert exported.read_bytes() == before
    assert export_run(run, tmp_path).name == f"{run.id}.cachemark.zip"
    with pytest.raises(UsageError, match="cannot be written"):
        export_run(run, tmp_path / "none" / "run.zip")


def test_a_resumed_run_keeps_whole_lines(run: Run, tmp_path: Path) -> None:
    with (run.folder / "outcomes.jsonl").open("ab") as file:
        file.write(b'{"run":"to')
    found, _ = import_run(export_run(run, tmp_path / "run.zip"), tmp_path / "there")
    assert found.outcomes() == run.outcomes()


def test_a_run_without_outcomes_yet(tmp_path: Path) -> None:
    run = kept(tmp_path / "here", made_header("young"), [])
    found, _ = import_run(export_run(run, tmp_path / "run.zip"), tmp_path / "there")
    assert found.outcomes() == []


@pytest.mark.parametrize(
    "name",
    ["../evil", "../../etc/evil", "/tmp/evil", "a/../../evil", "sub/run.json", "..\\evil", "lock",
     "run.json/", ".", "C:\\evil"],
)  # fmt: skip
def test_a_name_that_is_no_part_of_a_run(exported: Path, tmp_path: Path, name: str) -> None:
    content = signed({**members(exported), name: b"evil"})
    refused(packed(tmp_path / "bad.zip", content), tmp_path / "there", "no part of a run")


@pytest.mark.parametrize(
    "name", ["../evil", "..", ".", "", "a/b", "/abs", ".hidden", "a\\b", "x" * 300, "a\n", "a b"]
)
def test_an_id_that_is_no_folder_of_the_store(exported: Path, tmp_path: Path, name: str) -> None:
    content = members(exported)
    manifest = {**json.loads(content["manifest.json"]), "id": name}
    header = {**json.loads(content["run.json"]), "id": name}
    changed = {
        **content,
        "manifest.json": json.dumps(manifest).encode(),
        "run.json": json.dumps(header).encode(),
    }
    refused(packed(tmp_path / "bad.zip", signed(changed)), tmp_path / "there", "is no run's id")


def test_a_link_is_written_as_what_it_says(exported: Path, tmp_path: Path) -> None:
    """A member that claims to be a symbolic link is bytes like any other, and no report."""
    content = signed({**members(exported), "report.md": b"/etc/passwd"})
    path = tmp_path / "link.zip"
    with zipfile.ZipFile(path, "w") as made:
        for name, data in content.items():
            info = zipfile.ZipInfo(name)
            if name == "report.md":
                info.external_attr = (stat.S_IFLNK | 0o777) << 16
            made.writestr(info, data)
    found, _ = import_run(path, tmp_path / "there")
    report = found.folder / "report.md"
    assert not report.is_symlink()
    assert report.read_bytes() == b"/etc/passwd"


def drop(name: str) -> Callable[[Members], Members]:
    return lambda content: {key: data for key, data in content.items() if key != name}


def replace(name: str, old: bytes, new: bytes) -> Callable[[Members], Members]:
    def change(content: Members) -> Members:
        assert old in content[name]
        return {**content, name: content[name].replace(old, new)}

    return change


def manifest_with(**fields: Any) -> Callable[[Members], Members]:
    def change(content: Members) -> Members:
        manifest = {**json.loads(content["manifest.json"]), **fields}
        return {**content, "manifest.json": json.dumps(manifest).encode()}

    return change


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (replace("outcomes.jsonl", b'"hits":', b'"hitz":'), "checksum differs"),
        (replace("outcomes.jsonl", b"\n", b""), "checksum differs"),
        (replace("outcomes.jsonl", b"\n", b"\n\n"), "longer than its manifest"),
        (drop("manifest.json"), "no manifest"),
        (drop("report.md"), "lists other files"),
        (lambda content: signed(drop("run.json")(content)), "lists other files"),
        (manifest_with(files=[]), "lists other files"),
        (manifest_with(kind="else"), "reads cachemark-run of format 1"),
        (manifest_with(format=2), "reads cachemark-run of format 1"),
        (manifest_with(files=3), "its manifest cannot be read"),
        (lambda content: {**content, "manifest.json": b" " * 70_000}, "too long"),
        (manifest_with(id="another"), "its header is of"),
    ],
)
def test_what_does_not_agree_is_refused(
    exported: Path, tmp_path: Path, change: Callable[[Members], Members], text: str
) -> None:
    path = packed(tmp_path / "bad.zip", change(members(exported)))
    refused(path, tmp_path / "there", text)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (replace("outcomes.jsonl", b'"run":"2026-03-01-made"', b'"run":"other"'), "another run"),
        (replace("outcomes.jsonl", b'"state":"measured"', b'"state":"odd"'), "not an outcome"),
        (replace("run.json", b'"format":1', b'"format":9'), "a run of format 9"),
        (replace("run.json", b'"experiment":', b'"experimant":'), "not a run"),
    ],
)
def test_content_that_is_no_run_is_refused(
    exported: Path, tmp_path: Path, change: Callable[[Members], Members], text: str
) -> None:
    path = packed(tmp_path / "bad.zip", signed(change(members(exported))))
    refused(path, tmp_path / "there", text)


def test_a_bomb_is_stopped_at_what_it_admits(exported: Path, tmp_path: Path) -> None:
    content = members(exported)
    honest = signed(content)["manifest.json"]
    bomb = {**content, "manifest.json": honest, "report.md": b"0" * 50_000_000}
    path = packed(tmp_path / "bomb.zip", bomb)
    assert path.stat().st_size < 200_000
    refused(path, tmp_path / "there", "longer than its manifest")


def test_an_lzma_bomb_is_unpacked_in_small_steps(
    exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unpacked at once, it would need more memory than an import may take."""
    limits = msgspec.structs.replace(archive._LIMITS, memory_bytes=72 * 2**20)
    monkeypatch.setattr(archive, "_LIMITS", limits)
    bomb = {**members(exported), "report.md": b"0" * 100_000_000}
    path = packed(tmp_path / "bomb.zip", bomb, zipfile.ZIP_LZMA)
    assert path.stat().st_size < 200_000
    refused(path, tmp_path / "there", "longer than its manifest")


def test_an_lzma_dictionary_beyond_the_memory_is_refused(exported: Path, tmp_path: Path) -> None:
    """The head of an LZMA member says how much memory its dictionary takes."""
    path = packed(tmp_path / "bad.zip", members(exported), zipfile.ZIP_LZMA)
    data = bytearray(path.read_bytes())
    name = data.index(b"run.json")
    head = data.index(b"\x05\x00\x5d", name)  # the length of the properties, and their first byte
    data[head + 3 : head + 7] = b"\xff" * 4
    path.write_bytes(data)
    refused(path, tmp_path / "there", "needs more than 1024 MiB of memory")


def test_more_than_the_limit_is_refused(
    exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MAX_BYTES", 1000)
    refused(exported, tmp_path / "there", "longer than")


def test_another_way_of_packing_is_refused(exported: Path, tmp_path: Path) -> None:
    path = tmp_path / "bz2.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as made:
        for name, data in members(exported).items():
            made.writestr(name, data)
    refused(path, tmp_path / "there", "packed in another way")


def test_a_file_twice_is_refused(exported: Path, tmp_path: Path) -> None:
    path = tmp_path / "twice.zip"
    path.write_bytes(exported.read_bytes())
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "a") as made:
        made.writestr("run.json", b"{}")
    refused(path, tmp_path / "there", "a file twice")


@pytest.mark.parametrize("part", [0, 10, 0.5, 0.99])
def test_what_is_no_whole_archive_is_refused(exported: Path, tmp_path: Path, part: float) -> None:
    whole = exported.read_bytes()
    path = tmp_path / "torn.zip"
    path.write_bytes(whole[: int(part if part > 1 else part * len(whole))])
    refused(path, tmp_path / "there", "cannot be read")


@pytest.mark.slow("imports an archive once for each byte of its directory")
@pytest.mark.parametrize("packing", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_a_flipped_bit_is_found_anywhere(run: Run, tmp_path: Path, packing: int) -> None:
    """In content, names or the directory: refused, or of no account to what is kept."""
    exported = export_run(run, tmp_path / "run.zip", packing)
    whole = exported.read_bytes()
    path = tmp_path / "flipped.zip"
    content = {name: data for name, data in members(exported).items() if name != "manifest.json"}
    directory = whole.index(b"PK\x01\x02")
    for position in [*range(7, directory, directory // 60), *range(directory, len(whole))]:
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x10]) + whole[position + 1 :])
        root = tmp_path / f"there-{position}"
        try:
            found, _ = import_run(path, root)
        except UsageError:
            assert files(root) == {}
        else:
            assert without_mark(files(found.folder)) == content


def test_from_the_command_line(run: Run, inside: Inside, tmp_path: Path) -> None:
    made = inside("export", run.id, "out.zip", "--runs", "here")
    assert made.returncode == 0, made.stderr
    assert "3 trials in out.zip" in made.stdout
    taken = inside("import", "out.zip", "--runs", "there")
    assert taken.returncode == 0, taken.stderr
    assert run.id in inside("history", "--runs", "there").stdout
    assert "already exists" in inside("import", "out.zip", "--runs", "there").stdout
    (tmp_path / "text.zip").write_bytes(b"no zip at all")
    bad = inside("import", "text.zip", "--runs", "there")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert "cannot be read" in bad.stderr
    assert inside("export", run.id, "out.zip", "--runs", "here").returncode == 2
    assert inside("export", "gone", "new.zip", "--runs", "here").returncode == 2
