"""Workers of an installed package are built in the user's cache, never in the package."""

import os
from pathlib import Path

import pytest

from cachemark.host import shipped_folders
from cachemark.host.shipped_folders import shipped_folder, user_copy, writable_folder


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an installed package with workers; the user's cache is empty."""
    package = tmp_path / "site-packages" / "cachemark"
    setup = package / "_workers" / "toy" / "setup"
    setup.parent.mkdir(parents=True)
    setup.write_text("#!/bin/sh\n", encoding="utf-8")
    setup.chmod(0o755)
    (setup.parent / "worker.py").write_text("1\n", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CACHEMARK_WORKERS", raising=False)
    monkeypatch.setattr(shipped_folders, "_PACKAGE", package)
    return package


def test_the_copy_in_the_users_cache_can_be_executed(package: Path, tmp_path: Path) -> None:
    copy = writable_folder("workers", "CACHEMARK_WORKERS")
    assert copy.parent == tmp_path / "cache" / "cachemark" / "workers"
    assert sorted(path.name for path in (copy / "toy").iterdir()) == ["setup", "worker.py"]
    assert os.access(copy / "toy" / "setup", os.X_OK)
    assert shipped_folder("workers", "CACHEMARK_WORKERS") == package / "_workers"
    assert [path.name for path in copy.parent.iterdir()] == [copy.name]


def test_what_was_built_stays_until_the_sources_differ(package: Path) -> None:
    copy = writable_folder("workers", "CACHEMARK_WORKERS")
    (copy / "toy" / "built").write_text("", encoding="utf-8")
    # An installer compiles the Python files of a package.
    bytecode = package / "_workers" / "toy" / "__pycache__"
    bytecode.mkdir()
    (bytecode / "worker.pyc").write_text("", encoding="utf-8")
    assert writable_folder("workers", "CACHEMARK_WORKERS") == copy
    assert (copy / "toy" / "built").is_file()
    (package / "_workers" / "toy" / "worker.py").write_text("2\n", encoding="utf-8")
    other = writable_folder("workers", "CACHEMARK_WORKERS")
    assert other != copy
    assert not (other / "toy" / "built").exists()
    assert (copy / "toy" / "built").is_file()


@pytest.mark.parametrize("change", ["name", "mode"])
def test_the_hash_has_names_and_modes_too(change: str, package: Path) -> None:
    folder = package / "_workers"
    before = user_copy(folder, "workers")
    worker = folder / "toy" / "worker.py"
    if change == "name":
        worker.rename(worker.with_name("other.py"))
    else:
        worker.chmod(0o755)
    assert user_copy(folder, "workers") != before


def test_a_folder_that_is_named_is_used_itself(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = tmp_path / "named"
    named.mkdir()
    monkeypatch.setenv("CACHEMARK_WORKERS", str(named))
    assert writable_folder("workers", "CACHEMARK_WORKERS") == named
    assert package.is_dir()
    assert not (tmp_path / "cache").exists()


def test_the_copy_of_a_read_only_package_can_be_written(package: Path) -> None:
    folder = package / "_workers"
    everything = [*folder.rglob("*"), folder]
    for path in everything:
        path.chmod(path.stat().st_mode & 0o555)
    copy = user_copy(folder, "workers")
    assert all(path.stat().st_mode & 0o200 for path in (copy, *copy.rglob("*")))
    assert user_copy(folder, "workers") == copy
    for path in everything:
        path.chmod(path.stat().st_mode | 0o200)
