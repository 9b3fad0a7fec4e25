"""Which keys the threads of the suite java-clients use, as the suite and docs/originals.md say."""

from collections import Counter
from pathlib import Path
from typing import Any

from cachemark.host.process import binary_path
from cachemark.model.suites import find
from cachemark.runs.tapes import TapeCache
from tests.conftest import ROOT
from tests.workers.test_python_tape import tape

__all__ = ["tape"]

THREADS = 32
SUITE = find("java-clients")


def keys_of_threads(reader: Any, name: str, folder: Path) -> list[set[int]]:
    """The keys that each of the threads uses in a workload."""
    (workload,) = (one for one in SUITE.workloads if one.name == name)
    written = TapeCache(binary_path(), folder).get(workload, SUITE.loads[0], SUITE.timing, 1)
    read = reader.Tape(str(written.path))
    return [
        {key for number in read.numbers(lane, THREADS) for key in read.record(number)[2]}
        for lane in range(THREADS)
    ]


def test_a_set_get_thread_uses_a_quarter_of_the_keys(tape: Any, tmp_path: Path) -> None:
    threads = keys_of_threads(tape, "set-get", tmp_path)
    users = Counter(key for keys in threads for key in keys)
    assert len(users) == 5000
    assert set(users.values()) == {8}
    assert {round(len(keys) / 5000, 2) for keys in threads} == {0.25}
    said = " ".join(SUITE.analysis.split())
    assert "each thread goes through a quarter of the 5000 keys" in said
    assert "eight threads use each key" in said
    page = (ROOT / "docs" / "originals.md").read_text(encoding="utf-8")
    assert "a thread uses a quarter of 5000 keys, and eight threads each key" in page


def test_all_threads_of_same_keys_share_four(tape: Any, tmp_path: Path) -> None:
    assert keys_of_threads(tape, "same-keys", tmp_path) == [{0, 1, 2, 3}] * THREADS
