"""Copies of pymemcache that do a little more for each operation: the counts and rules show it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from cachemark.analysis.why.report import Difference, differences
from cachemark.endpoints.clients import ClientSpec, parse_client, registry
from cachemark.host import process
from cachemark.host.system_calls import missing_reason
from cachemark.model.counts import CountedWork, Counts
from cachemark.model.experiment import Keys, Load, Values, Workload
from cachemark.runs.counting.counting import CountingPlan, count

pytestmark = pytest.mark.skipif(bool(missing_reason()), reason="apt-get install strace")

CLIENT = "python/pymemcache"
UNCHANGED = "unchanged"


class Planted(NamedTuple):
    """The body of a function that sends `data` over `sock`, and what it makes of the counts."""

    sends: str
    more: dict[str, float]
    cause: str


# A socket of Python with a time-out polls before each send and each receive.
PLANTED = {
    "two writes": Planted(
        "sock.sendall(data[:3]); sock.sendall(data[3:])",
        {"sends": 1, "polls": 1, "recvs": 0, "turns": 0, "bytes_in": 0},
        "request in parts",
    ),
    "two more system calls": Planted(
        "sock.setsockopt(6, 1, 1); sock.getsockopt(6, 1); sock.sendall(data)",
        {"options": 2, "sends": 0, "recvs": 0, "polls": 0, "files": 0, "others": 0},
        "options per call",
    ),
    "a file": Planted(
        "__import__('os').stat('/'); sock.sendall(data)",
        {"files": 1, "sends": 0, "recvs": 0, "polls": 0, "options": 0},
        "files",
    ),
    "another request": Planted(
        "sock.sendall(b'mn\\r\\n'); sock.recv(4); sock.sendall(data)",
        {"sends": 1, "recvs": 1, "turns": 1, "segments_in": 1, "bytes_in": 4, "bytes_out": 4},
        "more round trips",
    ),
    "a connection": Planted(
        "socket.create_connection(sock.getpeername()).close(); sock.sendall(data)",
        {"connects": 1, "connections": 1, "sends": 0, "recvs": 0, "turns": 0, "bytes_in": 0},
        "connection per call",
    ),
    "another thread": Planted(
        "_pool().submit(sock.sendall, data).result()",
        {"sends": 0, "recvs": 0, "turns": 0, "waiting_threads": 1},
        "thread hand-over",
    ),
    "polls": Planted(
        "import select; [select.select([], [sock], []) for _ in range(3)]; sock.sendall(data)",
        {"polls": 3, "sends": 0, "recvs": 0},
        "poll before each read",
    ),
}


def changed_client(folder: Path, name: str, sends: str) -> ClientSpec:
    """The client with a copy of its library that sends otherwise."""
    spec = parse_client(CLIENT, registry(process.binary_path()))
    if missing := spec.client.missing():
        pytest.skip(missing)
    # Not resolved: the interpreter of a virtual environment is a link.
    python = spec.client.needs
    where = "import os, pymemcache; print(os.path.dirname(pymemcache.__file__))"
    asked = subprocess.run([python, "-c", where], capture_output=True, text=True, check=True)
    tree = folder / name.replace(" ", "-")
    shutil.copytree(asked.stdout.strip(), tree / "pymemcache")
    file = tree / "pymemcache" / "client" / "base.py"
    text, calls = re.subn(r"self\.sock\.sendall\(", "_planted(self.sock, ", file.read_text())
    assert calls >= 2
    pool = "@__import__('functools').cache\ndef _pool():\n    return ThreadPoolExecutor(1)"
    imports = "from concurrent.futures import ThreadPoolExecutor"
    file.write_text(f"{text}\n\n{imports}\n\n{pool}\n\ndef _planted(sock, data):\n    {sends}\n")
    command = ["env", f"PYTHONPATH={tree}", *spec.client.command]
    return ClientSpec(
        text=name, client=msgspec.structs.replace(spec.client, command=command), version=""
    )


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, CountedWork]:
    """All copies, counted once: with one repetition, counts have no error."""
    folder = tmp_path_factory.mktemp("planted")
    bodies = {
        UNCHANGED: "sock.sendall(data)",
        "the same again": "sock.sendall(data)",
        **{name: planted.sends for name, planted in PLANTED.items()},
    }
    clients = [changed_client(folder, name, sends) for name, sends in bodies.items()]
    plan = CountingPlan(
        clients=clients,
        workload=Workload(
            name="get", mix={"get": 1}, keys=Keys(count=50, length="20"), values=Values(size="100")
        ),
        load=Load(name="one-caller"),
        repeat=1,
    )
    found = count(plan, process.binary_path(), lambda _: None)
    return {each.client: each for each in found.works}


def counts_of(work: CountedWork) -> Counts:
    assert not work.failure
    (counts,) = work.repetitions
    return counts


def difference(counted: dict[str, CountedWork], name: str) -> Difference:
    (found,) = differences([counted[UNCHANGED], counted[name]])
    return found


def test_counts_of_a_get_are_those_of_the_text_protocol(counted: dict[str, CountedWork]) -> None:
    counts = counts_of(counted[UNCHANGED])
    key, value = 20, 100
    assert counts.bytes_in == len("get \r\n") + key
    assert counts.bytes_out == len("VALUE  0 100\r\n\r\nEND\r\n") + key + value
    assert (counts.turns, counts.pieces, counts.connections) == (1, 1, 0)
    assert (counts.segments_in, counts.segments_out) == (1, 1)
    # One send and one receive, and a poll before each of them.
    assert (counts.sends, counts.full_recvs, counts.polls) == (1, 1, 2)
    assert (counts.connects, counts.threads) == (0, 1)
    # It waits for the reply, unless the server was faster.
    assert counts.switches == pytest.approx(1, abs=0.4)
    assert (counts.user_us or 0) > 0
    assert (counts.system_us or 0) > 0


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_difference_is_counted_and_named_first(
    name: str, counted: dict[str, CountedWork]
) -> None:
    planted = PLANTED[name]
    mine, others = counts_of(counted[name]), counts_of(counted[UNCHANGED])
    more = {figure: getattr(mine, figure) - getattr(others, figure) for figure in planted.more}
    assert more == pytest.approx(planted.more, abs=0.2)
    assert difference(counted, name).findings[0].cause == planted.cause


def test_the_unchanged_library_differs_from_itself_in_nothing(
    counted: dict[str, CountedWork],
) -> None:
    found = difference(counted, "the same again")
    assert (found.findings, found.findings_of_base) == ([], [])
