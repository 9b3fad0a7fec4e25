"""Instructions under valgrind: more work has more of them, and a client that ends has none."""

import shutil
from pathlib import Path

import msgspec
import pytest

from cachemark.endpoints.clients import ClientSpec, registry
from cachemark.endpoints.servers import parse_spec, running
from cachemark.host import process
from cachemark.model.counts import Counts
from cachemark.model.experiment import Keys, Load, Timing, Values, Workload
from cachemark.runs.counting.instructions import VALGRIND, count_instructions
from cachemark.runs.counting.player import CountingPlace, Work
from cachemark.runs.tapes import TapeCache

pytestmark = pytest.mark.skipif(not shutil.which(VALGRIND), reason="apt-get install valgrind")


def counted(client: ClientSpec, folder: Path, *kinds: str) -> dict[str, Counts]:
    load, works = Load(name="one-caller"), list[Work]()
    tapes = TapeCache(process.binary_path(), folder)
    for kind in kinds:
        workload = Workload(
            name=kind,
            mix={kind: 1},
            keys=Keys(count=50),
            values=Values(size="100"),
            run=50,
            records=200,
        )
        tape = tapes.get(workload, load, Timing(), 1)
        works.append(Work(kind=kind, workload=workload, load=load, tape=tape))
    with running(parse_spec("embedded:io=blocking")) as server:
        place = CountingPlace(server_cpus="", worker_cpus="", folder=folder)
        return count_instructions(client, works, server, place)


@pytest.mark.parametrize("name", ["native", "perl/fast"])
def test_fifty_keys_take_more_instructions_than_one(name: str, tmp_path: Path) -> None:
    client = registry(process.binary_path())[name]
    if missing := client.missing():
        pytest.skip(missing)
    counts = counted(ClientSpec(text=name, client=client), tmp_path, "get", "mget")
    one, fifty = (counts[kind].instructions or 0.0 for kind in ("get", "mget"))
    assert 500 < one < 500_000
    assert fifty > 2 * one


def test_a_client_that_valgrind_cannot_run_has_no_counts(tmp_path: Path) -> None:
    client = msgspec.structs.replace(registry(process.binary_path())["native"], command=["false"])
    assert counted(ClientSpec(text="ends", client=client), tmp_path, "get") == {}
