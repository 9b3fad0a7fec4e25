"""The changes to the engine's wheel after maturin has built it.

The debug information of its program is removed; its symbols stay, because profilers and instruction
counts name functions by them. The debug information is that of Rust's library, of C sources and of
zig: it has paths of this machine, and half of the bytes. zig's linker can only remove both.

The wheel records the hash of the sources that it was built from, so that a checkout with the same
sources can use it instead of a build.
"""

from __future__ import annotations

import base64
import hashlib
import subprocess
import tempfile
import zipfile
from pathlib import Path

_PROGRAM = "/scripts/cachemark-engine"
_RECORD = ".dist-info/RECORD"
SOURCES = "engine-sources.sha256"


def sources_hash(engine: Path) -> str:
    """The SHA-256 of the names and bytes of everything that the engine is built from.

    That is all of `crates/`, Cargo.lock, and Cargo.toml, which also has the profile of the build.
    The file with the commit is left out: an export and a checkout of one commit have another one.
    """
    files = [
        path
        for path in (engine / "crates").rglob("*")
        if path.is_file() and path.name != "commit.txt"
    ]
    whole = hashlib.sha256()
    for path in sorted([*files, engine / "Cargo.lock", engine / "Cargo.toml"]):
        name = path.relative_to(engine).as_posix()
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        whole.update(f"{content}  {name}\n".encode())
    return whole.hexdigest()


def finish(wheel: Path, sources: str) -> None:
    """Write the wheel again, with the hash of its sources. Ends this program without `strip`."""
    with zipfile.ZipFile(wheel) as files:
        contents = {info: files.read(info) for info in files.infolist()}
    (record,) = (info for info in contents if info.filename.endswith(_RECORD))
    recorded = zipfile.ZipInfo(record.filename.replace("RECORD", SOURCES), record.date_time)
    recorded.external_attr = record.external_attr
    contents[recorded] = f"{sources}\n".encode()
    for info, content in contents.items():
        if info.filename.endswith(_PROGRAM):
            contents[info] = _stripped(content)
    for info in contents:
        if info.filename.endswith(_RECORD):
            contents[info] = _record(info.filename, contents)
    with zipfile.ZipFile(wheel, "w") as files:
        for info, content in contents.items():
            files.writestr(info, content, zipfile.ZIP_DEFLATED)


def _stripped(program: bytes) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program"
        path.write_bytes(program)
        try:
            subprocess.run(["strip", "--strip-debug", path], check=True)
        except FileNotFoundError:
            raise SystemExit("dist: there is no `strip`: apt-get install binutils") from None
        return path.read_bytes()


def _record(own: str, contents: dict[zipfile.ZipInfo, bytes]) -> bytes:
    """The list of a wheel's files, with their hashes."""
    lines = [
        f"{info.filename},sha256={_hash(content)},{len(content)}"
        for info, content in contents.items()
        if info.filename != own
    ]
    return "".join(f"{line}\n" for line in [*lines, f"{own},,"]).encode()


def _hash(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
