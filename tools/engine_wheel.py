"""Remove the debug information from the program in the engine's wheel; its symbols stay.

Profilers and instruction counts name functions by the symbols. The debug information is that of
Rust's library, of C sources and of zig: it has paths of this machine, and half of the bytes. zig's
linker can only remove both.
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


def remove_debug_information(wheel: Path) -> None:
    """Write the wheel again. Ends this program where there is no `strip`."""
    with zipfile.ZipFile(wheel) as files:
        contents = {info: files.read(info) for info in files.infolist()}
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
