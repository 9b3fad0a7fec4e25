"""SharedStore.php: a cache that PHP programs share, used by several of them."""

import os
import subprocess
from pathlib import Path

import pytest

from cachemark.endpoints.client_readiness import query_worker
from cachemark.endpoints.clients import registry, workers_folder
from cachemark.host import process

CLIENT = registry(process.binary_path())["php/shared-store"]
READINESS = query_worker(CLIENT)
CLASS = workers_folder() / "php" / "SharedStore.php"
VERSION = "try { SharedStore::version(); } catch (RuntimeException $e) { echo $e->getMessage(); }"

pytestmark = pytest.mark.skipif(READINESS.ready is None, reason=READINESS.state)


def php(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["php", *words], capture_output=True, text=True, check=False, timeout=600)


def test_php_programs_share_a_store(tmp_path: Path) -> None:
    name = f"test-php-{os.getpid()}"
    try:
        ended = php(Path(__file__).parent / "shared_store.php", CLASS, name, tmp_path)
    finally:
        subprocess.run(
            [process.binary_path(), "store", "destroy", name],
            stderr=subprocess.DEVNULL,
            check=False,
        )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("built", "is not built: cachemark setup php"),
        ("version", "of another version: cachemark setup php"),
    ],
)
def test_a_library_that_does_not_fit_is_one_error(change: str, says: str, tmp_path: Path) -> None:
    text = CLASS.read_text(encoding="utf-8")
    if change == "version":
        assert "ABI = 1;" in text
        text = text.replace("ABI = 1;", "ABI = 2;")
        (tmp_path / "target").symlink_to(CLASS.parent / "target")
    copy = tmp_path / "SharedStore.php"
    copy.write_text(text, encoding="utf-8")
    ended = php("-r", f"require '{copy}'; {VERSION}")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.endswith(says)
