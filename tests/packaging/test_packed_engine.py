"""`make setup` takes the engine from a wheel in dist/ of the same sources, and from no other."""

import platform
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tools import packed_engine
from tools.engine_wheel import finish, sources_hash

UV = ROOT / ".tools" / "bin" / "uv"
NAME = "cachemark_engine-1.2.3"
METADATA = "Metadata-Version: 2.1\nName: cachemark-engine\nVersion: 1.2.3\n"
WHEEL = "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-any\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with sources of an engine, an empty environment, and uv."""
    source = tmp_path / "engine" / "crates" / "engine"
    source.mkdir(parents=True)
    for name in ("Cargo.toml", "Cargo.lock", "crates/engine/main.rs", "crates/engine/commit.txt"):
        (tmp_path / "engine" / name).write_text(name, encoding="utf-8")
    (tmp_path / ".tools").symlink_to(ROOT / ".tools")
    subprocess.run([UV, "venv", "--quiet", tmp_path / ".venv"], check=True)
    for name in ("RUSTFLAGS", "CARGO_TARGET_DIR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def pack(root: Path, machine: str = platform.machine()) -> None:
    """Write the wheel of the checkout's engine into dist/, as `make dist` does."""
    (root / "dist").mkdir()
    wheel = root / "dist" / f"{NAME}-py3-none-manylinux_2_17_{machine}.whl"
    compiled = root / "program"
    compiled.with_suffix(".c").write_text("int main(void) { return 7; }\n", encoding="utf-8")
    subprocess.run(["gcc", "-o", compiled, compiled.with_suffix(".c")], check=True)
    with zipfile.ZipFile(wheel, "w") as files:
        program = zipfile.ZipInfo(f"{NAME}.data/scripts/cachemark-engine", (2026, 11, 26, 0, 0, 0))
        program.external_attr = 0o755 << 16
        files.writestr(program, compiled.read_bytes())
        for name, content in (("METADATA", METADATA), ("WHEEL", WHEEL), ("RECORD", "")):
            files.writestr(f"{NAME}.dist-info/{name}", content)
    finish(wheel, sources_hash(root / "engine"))


def test_a_wheel_of_the_same_sources_is_installed(root: Path) -> None:
    pack(root)
    # An export has another one than a checkout.
    (root / "engine" / "crates" / "engine" / "commit.txt").write_text("f00", encoding="utf-8")
    assert packed_engine.main(root) == 0
    program = root / ".venv" / "bin" / "cachemark-engine"
    assert subprocess.run([program], check=False).returncode == 7
    program.unlink()
    # It is not installed again.
    assert packed_engine.main(root) == 0
    assert not program.exists()


@pytest.mark.parametrize(
    "changed", ["Cargo.toml", "Cargo.lock", "crates/engine/main.rs", "crates/new.rs"]
)
def test_a_wheel_of_other_sources_is_not(root: Path, changed: str) -> None:
    pack(root)
    with (root / "engine" / changed).open("a", encoding="utf-8") as file:
        file.write("changed")
    assert packed_engine.main(root) == 1
    assert not (root / ".venv" / "bin" / "cachemark-engine").exists()


def test_a_wheel_for_another_processor_is_not(root: Path) -> None:
    pack(root, machine="z80")
    assert packed_engine.main(root) == 1


def test_a_broken_wheel_is_not(root: Path) -> None:
    pack(root)
    (wheel,) = (root / "dist").iterdir()
    wheel.write_bytes(wheel.read_bytes()[:100])
    assert packed_engine.main(root) == 1


def test_no_wheel_is_used_where_settings_change_the_build(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack(root)
    monkeypatch.setenv("RUSTFLAGS", "-C target-cpu=native")
    assert packed_engine.main(root) == 1
