"""Every language's reader of tapes: what breaks a rule is refused, whatever else the file holds."""

import random
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from cachemark.endpoints.clients import Client
from cachemark.endpoints.worker import Worker
from cachemark.model.protocol import Failure, Prepare, Ready, RunRequest, Unsupported
from tests.workers import worker_driver
from tests.workers.test_python_tape import GET, READ, REFUSED, made

# In process, so that there is nothing but the reader to go wrong.
_READERS = worker_driver.clients([n for n in worker_driver.known() if n.endswith("/null")])
_ANSWERS = (Failure, Ready, Unsupported)


@pytest.fixture(scope="module", params=_READERS)
def worker(request: Any) -> Generator[Worker]:
    client: Client = request.param
    with worker_driver.started(client) as (worker, _):
        yield worker


def prepare(worker: Worker, path: Path) -> object:
    return worker_driver.ask(worker, Prepare(servers=[], wire="none", tape=str(path)))


@pytest.mark.parametrize("name", REFUSED)
def test_what_breaks_a_rule_is_refused(name: str, worker: Worker, tmp_path: Path) -> None:
    change: dict[str, Any] = {"ops": [READ], **REFUSED[name][0]}
    data = bytearray(made(**change))
    if name == "version 1":
        data[8] = 1
    path = tmp_path / "tape"
    path.write_bytes(data)
    answer = prepare(worker, path)
    assert isinstance(answer, Failure), answer
    assert answer.kind == "tape", answer


def test_the_same_tape_without_the_fault_is_read(worker: Worker, tmp_path: Path) -> None:
    path = tmp_path / "tape"
    path.write_bytes(made([READ, (GET, 0, 1, 1, 0, 0)], group=2))
    assert isinstance(prepare(worker, path), Ready)


@pytest.mark.parametrize("schedule", [(), ("--rate", "100", "--duration", "400ms")])
def test_no_tape_can_crash_it(schedule: tuple[str, ...], worker: Worker, tmp_path: Path) -> None:
    mix = ("--keys", "20", "--size", "10..50", "--mix", "get=2,mget=1,set=1,delete=1")
    good = worker_driver.write_tape(tmp_path, *mix, *(schedule or ("--ops", "40"))).read_bytes()
    draw, bad = random.Random(7), tmp_path / "bad"
    refused = 0
    for attempt in range(150):
        bad.write_bytes(_broken(bytearray(good), attempt, draw))
        answer = prepare(worker, bad)
        assert isinstance(answer, _ANSWERS), answer
        if isinstance(answer, Failure):
            assert answer.kind == "tape", answer
            refused += 1
    assert refused >= 50
    answer = prepare(worker, tmp_path / "none")
    assert isinstance(answer, Failure)
    assert answer.kind == "tape"
    answer = worker_driver.ask(worker, RunRequest(phase="measure", ops=1))
    assert isinstance(answer, Failure), "it played a tape that it was not given"


def _broken(data: bytearray, attempt: int, draw: random.Random) -> bytes:
    if attempt % 3 == 0:
        at = 8 * draw.randrange(23)  # a field of the header
        field = draw.choice([0, 1, 7, 2**31, 2**63, 2**64 - 1])
        data[at : at + 8] = field.to_bytes(8, "little")
    elif attempt % 3 == 1:
        data[184 + draw.randrange(600)] = draw.randrange(256)  # keys, offsets, lengths
    else:
        del data[draw.randrange(len(data)) :]
    return bytes(data)
