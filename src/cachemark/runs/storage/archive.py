"""A run as one file: a ZIP of its header, its outcomes and its report.

`manifest.json` has the name, length and SHA-256 of each file. The same run always gives the same
bytes. An archive is untrusted input. It is unpacked, and all of it is checked, in a process of its
own with limits on memory, time and bytes. Only then does the run appear in the store.
"""

import contextlib
import datetime
import hashlib
import lzma
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated

import msgspec
from msgspec import Meta

from cachemark import __version__
from cachemark.host.atomic_file import made_folder, replace_file
from cachemark.host.files import is_folder, open_regular, read_regular
from cachemark.host.sandbox import SandboxLimits, run_limited
from cachemark.host.temporary import temporary_folder
from cachemark.model.errors import DECODE_ERRORS, UsageError
from cachemark.model.foreign_text import in_a_sentence
from cachemark.runs.storage.run_limits import check_run
from cachemark.runs.storage.store import IMPORTED, OWN_FILES, RUN_ID, Run, open_run, run_names

ARCHIVE_FORMAT = 1
SUFFIX = ".cachemark.zip"
_KIND = "cachemark-run"
_MANIFEST = "manifest.json"
_REQUIRED = ("run.json", "outcomes.jsonl")
_NAMES = (*_REQUIRED, "report.md")
# A run of a thousand trials takes some tens of megabytes.
MAX_BYTES = 2**30
# Of the whole archive, as it may lie about its parts. A small archive may have any ratio.
_MAX_RATIO = 100
_FREE_BYTES = 4 * 2**20
_LIMITS = SandboxLimits(memory_bytes=2**30, time_s=120, file_bytes=MAX_BYTES)
_MAX_MANIFEST_BYTES = 2**16
# zipfile unpacks as much of an LZMA member at once as it reads: at most 7000 times a chunk.
_CHUNK = 2**12
_BROKEN = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error)
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA)
_ENCRYPTED = 0x1
# The earliest time that ZIP has. The times of the run are in its header.
_EPOCH = (1980, 1, 1, 0, 0, 0)
_STAGING_FOLDER = ".importing"


class File(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the archive."""

    name: str
    bytes: Annotated[int, Meta(ge=0, le=2**40)]
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of an archive."""

    kind: str
    format: int
    id: str
    cachemark: str
    files: list[File]


def export_run(run: Run, path: Path, packing: int = zipfile.ZIP_DEFLATED) -> Path:
    """Write a run to a new file, or into a folder, and return the path of the file.

    If the run has not ended, the archive has the trials that have. With the packing ZIP_LZMA it
    is a sixth smaller, and fewer programs than cachemark can unpack it. Raises UsageError.
    """
    target = path / f"{run.id}{SUFFIX}" if is_folder(path) else path
    run.outcomes()  # raises if they cannot be read
    contents = _contents(run)
    manifest = Manifest(
        kind=_KIND,
        format=ARCHIVE_FORMAT,
        id=run.id,
        cachemark=__version__,
        files=[
            File(name=name, bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
            for name, data in contents.items()
        ],
    )
    head = msgspec.json.format(msgspec.json.encode(manifest)) + b"\n"
    try:
        with target.open("xb") as file:
            try:
                _write(file, {_MANIFEST: head, **contents}, packing)
            except BaseException:
                target.unlink(missing_ok=True)
                raise
    except FileExistsError as error:
        raise UsageError(f"{target}: is there already", "name a file that is not") from error
    except OSError as error:
        raise UsageError(f"{target}: cannot be written: {error}") from error
    return target


def _contents(run: Run) -> dict[str, bytes]:
    contents: dict[str, bytes] = dict.fromkeys(_REQUIRED, b"")
    for name in _NAMES:
        path = run.folder / name
        try:
            data = read_regular(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
        # The part behind the last newline is being written, or incomplete.
        contents[name] = data[: data.rfind(b"\n") + 1] if name.endswith(".jsonl") else data
    return contents


def _write(file: IO[bytes], contents: dict[str, bytes], packing: int) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in contents.items():
            info = zipfile.ZipInfo(name, _EPOCH)
            info.compress_type = packing
            info.external_attr = 0o100644 << 16
            archive.writestr(info, data)


def check_contents(run: Run) -> None:
    """Check that a run's header and outcomes fit together. Raises UsageError."""
    check_run(run.header, run.outcomes())


def import_run(
    path: Path, root: Path, rehearse: Callable[[Run], object] = check_contents
) -> tuple[Run, bool]:
    """Import a run into a store: the run, and whether it was new. Raises UsageError.

    `rehearse` uses the unpacked run as the store will use it, and raises
    whatever that raises.
    """
    try:
        with made_folder(root), _staging_folder(root) as stage:
            encoded = _run_limited(lambda: _unpacked(path, stage, rehearse), path, stage)
            manifest = msgspec.json.decode(encoded, type=Manifest)
            run = open_run(str(stage), stage)
            _mark_as_imported(run, path, manifest)
            return _move_into_store(run, root, manifest, path)
    except OSError as error:
        raise _import_error(path, f"cannot be imported: {error}") from error


def _run_limited(work: Callable[[], bytes], path: Path, stage: Path) -> bytes:
    try:
        return run_limited(work, _LIMITS)
    except UsageError as error:
        if error.text.startswith(str(path)):
            raise
        # A file is named as in the archive: its folder is already gone.
        raise _import_error(path, error.text.replace(f"{stage}/", "")) from error


def _unpacked(path: Path, stage: Path, rehearse: Callable[[Run], object]) -> bytes:
    """Unpack and check everything; the manifest as JSON. Raises UsageError."""
    try:
        with open_regular(path, follow=True) as packed:
            packed_bytes = os.fstat(packed.fileno()).st_size
            if packed_bytes > MAX_BYTES:
                raise _import_error(path, f"is longer than {MAX_BYTES // 2**20} MiB")
            with zipfile.ZipFile(packed) as archive:
                manifest = _manifest(archive, path)
                _check_sizes(manifest, packed_bytes, path)
                for file in manifest.files:
                    _unpack(archive, file, stage / file.name, path)
    except (OSError, EOFError, ValueError, NotImplementedError, *_BROKEN) as error:
        raise _import_error(path, f"cannot be read: {error}") from error
    rehearse(_validated_run(stage, manifest, path))
    return msgspec.json.encode(manifest)


def _mark_as_imported(run: Run, path: Path, manifest: Manifest) -> None:
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    mark = {"file": path.name, "imported_at": now, "cachemark": manifest.cachemark}
    replace_file(run.folder / IMPORTED, msgspec.json.encode(mark) + b"\n")


@contextmanager
def _staging_folder(root: Path) -> Generator[Path]:
    """A temporary folder on the file system of the store, outside the list of runs."""
    stages = root / _STAGING_FOLDER
    stages.mkdir(exist_ok=True)
    try:
        with temporary_folder(stages) as folder:
            stage = folder / "run"
            stage.mkdir()
            yield stage
    finally:
        with contextlib.suppress(OSError):  # another import may use it
            stages.rmdir()


def _manifest(archive: zipfile.ZipFile, path: Path) -> Manifest:
    """The manifest, after a check that it and the members agree."""
    members = [member.filename for member in archive.infolist()]
    for name in members:
        if name not in (_MANIFEST, *_NAMES):
            raise _import_error(path, f"holds {in_a_sentence(name)!r}, which is no part of a run")
    for member in archive.infolist():
        if member.flag_bits & _ENCRYPTED or member.compress_type not in _PACKINGS:
            raise _import_error(path, f"{member.filename} is encrypted, or packed in another way")
    if len(set(members)) < len(members) or _MANIFEST not in members:
        raise _import_error(path, "has no manifest, or a file twice")
    if archive.getinfo(_MANIFEST).file_size > _MAX_MANIFEST_BYTES:
        raise _import_error(path, "its manifest is too long")
    try:
        manifest = msgspec.json.decode(archive.read(_MANIFEST), type=Manifest)
    except DECODE_ERRORS as error:
        raise _import_error(path, f"its manifest cannot be read: {error}") from error
    if manifest.kind != _KIND or manifest.format != ARCHIVE_FORMAT:
        raise UsageError(
            f"{path}: {in_a_sentence(manifest.kind)} of format {manifest.format}, this cachemark "
            f"reads {_KIND} of format {ARCHIVE_FORMAT}",
            f"read it with cachemark {in_a_sentence(manifest.cachemark)}",
        )
    listed = [file.name for file in manifest.files]
    if sorted(listed) != sorted(set(members) - {_MANIFEST}) or not set(_REQUIRED) <= set(listed):
        raise _import_error(path, "its manifest lists other files than it holds")
    # Some file systems take no notice of case.
    if not RUN_ID.fullmatch(manifest.id) or manifest.id.lower() in OWN_FILES:
        raise _import_error(path, f"{in_a_sentence(manifest.id)!r} is no run's id")
    return manifest


def _check_sizes(manifest: Manifest, packed_bytes: int, path: Path) -> None:
    """Raise UsageError for a file that would become too long, or much longer than it is."""
    unpacked_bytes = sum(file.bytes for file in manifest.files)
    if unpacked_bytes > MAX_BYTES:
        raise _import_error(path, f"is longer than {MAX_BYTES // 2**20} MiB unpacked")
    if unpacked_bytes > max(_FREE_BYTES, _MAX_RATIO * packed_bytes):
        raise _import_error(path, f"would become more than {_MAX_RATIO} times as long as it is")


def _unpack(archive: zipfile.ZipFile, file: File, target: Path, path: Path) -> None:
    """Unpack a member, at most to the length in the manifest, and check its checksum."""
    digest, length = hashlib.sha256(), 0
    with archive.open(file.name) as member, target.open("xb") as out:
        while chunk := member.read(_CHUNK):
            length += len(chunk)
            if length > file.bytes:
                raise _import_error(path, f"{file.name} is longer than its manifest says")
            digest.update(chunk)
            out.write(chunk)
        out.flush()
        os.fsync(out.fileno())
    if length != file.bytes or digest.hexdigest() != file.sha256:
        raise _import_error(
            path, f"{file.name} is not what its manifest says: the checksum differs"
        )


def _validated_run(stage: Path, manifest: Manifest, path: Path) -> Run:
    """The unpacked run, once every line of it has been read."""
    run = open_run(str(stage), stage)
    if run.id != manifest.id:
        raise _import_error(path, f"its header is of {run.id!r}, its manifest of {manifest.id!r}")
    strangers = {outcome.run for outcome in run.outcomes()} - {run.id}
    if strangers:
        raise _import_error(path, f"it holds outcomes of another run, {min(strangers)!r}")
    return run


def _move_into_store(run: Run, root: Path, manifest: Manifest, path: Path) -> tuple[Run, bool]:
    target = root / run.id
    if run.id in run_names(root):
        if all(
            _same_content(target / file.name, file)
            for file in manifest.files
            if file.name in _REQUIRED
        ):
            return open_run(run.id, root), False
        raise UsageError(
            f"{path}: another run {run.id} is in {root}, and runs are never overwritten",
            "import it into another folder: --runs FOLDER",
        )
    if os.path.lexists(target):
        raise UsageError(f"{target}: is there already, and no run", "move it away")
    run.folder.chmod(0o755)
    run.folder.rename(target)
    return open_run(run.id, root), True


def _same_content(path: Path, file: File) -> bool:
    try:
        return hashlib.sha256(read_regular(path)).hexdigest() == file.sha256
    except OSError:
        return False


def _import_error(path: Path, why: str) -> UsageError:
    return UsageError(f"{path}: {why}", "nothing was imported")
