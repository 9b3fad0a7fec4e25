"""The record of each client holds until something that it came from changes."""

import sys
from pathlib import Path

import pytest

from cachemark.endpoints.client_readiness import query_workers, recorded_readiness
from cachemark.endpoints.clients import Client, registry
from cachemark.model.protocol import PROTOCOL_VERSION

WORKER = """
import json, sys
for line in sys.stdin:
    if json.loads(line)["type"] == "bye":
        print(json.dumps({"type": "bye"}), flush=True)
        break
    with open(sys.argv[1], "a") as starts:
        starts.write("x")
    print(json.dumps({
        "type": "ready", "protocol": PROTOCOL, "client": "toy/one", "library": "toy",
        "library_version": VERSION, "language": "toy", "runtime": "toy", "capabilities": [],
    }), flush=True)
"""


class Toy:
    """A folder of workers with one client, which counts how often it was started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "workers"
        self._starts = folder / "starts"
        self._source = self.folder / "toy" / "worker.py"
        self._source.parent.mkdir(parents=True)
        self.write("1.0")
        (self.folder / "toy" / "worker.toml").write_text(
            'language = "toy"\n[runtime.toy]\n'
            f'command = [{sys.executable!r}, "worker.py", {str(self._starts)!r}]\n'
            '[[client]]\nname = "one"\nruntimes = ["toy"]\n'
        )

    def write(self, version: str) -> None:
        self._source.write_text(f"VERSION, PROTOCOL = {version!r}, {PROTOCOL_VERSION}\n{WORKER}")

    @property
    def starts(self) -> int:
        return len(self._starts.read_text()) if self._starts.exists() else 0

    def client(self) -> Client:
        return registry("", self.folder)["toy/one"]

    def ask(self) -> None:
        assert [client.id for client, _ in query_workers([self.client()], self.folder)]

    def recorded(self) -> str | None:
        """The recorded version of the library; None if the worker has to be asked."""
        found = recorded_readiness([self.client()], self.folder)
        if not found:
            return None
        ready = found["toy/one"].ready
        return ready.library_version if ready else ""


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    return Toy(tmp_path)


def test_a_recorded_answer_needs_no_worker(toy: Toy) -> None:
    assert toy.recorded() is None
    toy.ask()
    assert toy.starts == 1
    assert toy.recorded() == "1.0"
    assert toy.starts == 1


def test_a_changed_source_file_ends_a_recorded_answer(toy: Toy) -> None:
    toy.ask()
    toy.write("1.1.0")
    assert toy.recorded() is None
    toy.ask()
    assert toy.recorded() == "1.1.0"


def test_a_changed_environment_variable_ends_a_recorded_answer(
    toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy.ask()
    monkeypatch.setenv("CACHEMARK_TOY", "elsewhere")
    assert toy.recorded() is None


def test_a_new_package_ends_the_answer_that_something_is_missing(
    toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = tmp_path / "status"
    packages.write_text("one")
    monkeypatch.setattr("cachemark.endpoints.client_readiness._DEBIAN_PACKAGES", packages)
    (toy.folder / "toy" / "worker.py").write_text("raise SystemExit(1)")
    toy.ask()
    assert toy.recorded() == ""
    packages.write_text("one and another")
    assert toy.recorded() is None


def test_a_damaged_record_is_no_record(toy: Toy) -> None:
    toy.ask()
    (toy.folder / ".clients.json").write_text('{"toy/one": 3}')
    assert toy.recorded() is None


def test_a_folder_that_cannot_be_written_keeps_no_record(toy: Toy, tmp_path: Path) -> None:
    client = toy.client()
    answers = list(query_workers([client], tmp_path / "absent"))
    assert [(it.id, answer.state) for it, answer in answers] == [("toy/one", "ready")]
