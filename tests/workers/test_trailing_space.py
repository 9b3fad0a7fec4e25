"""A server that wants a space at the end of lines: clients that can write it, and that need it."""

from pathlib import Path

import pytest

from cachemark.endpoints.clients import registry
from cachemark.endpoints.worker import Worker
from cachemark.host import process
from cachemark.model.protocol import Done, Ready, RunRequest, Unsupported
from tests.endpoints.probe.deviant import deviant
from tests.workers import worker_driver

CLIENTS = registry(process.binary_path())
STORES = "get=1,set=2,add=1,replace=1,set_noreply=2,mset=1,mset_noreply=1,gets=1"
OTHERS = "delete=1,delete_noreply=1,incr=1,decr_noreply=1,touch=1,touch_noreply=1,set=1"
CASES = [
    ("native", STORES + ",cas=1"),
    ("native", OTHERS),
    ("python/socket", STORES.replace(",gets=1", "")),
    ("python/socket", OTHERS),
    ("python/pymemcache", STORES),
    ("python/python-memcached", STORES + ",cas=1"),
    ("python/python-memcached", OTHERS),
]


def played(client: str, mix: str, folder: Path, options: dict[str, str]) -> Done:
    """A short run on a server that closes a connection that leaves out the space."""
    if missing := CLIENTS[client].missing():
        pytest.skip(f"{missing}: {CLIENTS[client].setup}")
    shape = ("--keys", "20", "--size", "1", "--prefill", "0", "--ops", "200", "--run", "3")
    counters = ("--counters", "5") if "incr" in mix else ()
    tape = worker_driver.write_tape(folder, *shape, *counters, "--mix", mix)
    with (
        deviant("wants_space", "closes_on_error") as address,
        worker_driver.started(CLIENTS[client]) as (worker, ready),
    ):
        assert "trailing_space" in ready.capabilities
        setup = worker_driver.patient(servers=[address], tape=str(tape), options=options)
        assert isinstance(worker_driver.ask(worker, setup), Ready)
        return worker_driver.play(worker, RunRequest(phase="measure", ops=200))


@pytest.mark.parametrize(("client", "mix"), CASES)
def test_every_command_is_as_the_server_wants_it(client: str, mix: str, tmp_path: Path) -> None:
    done = played(client, mix, tmp_path, {"trailing_space": "yes"})
    assert [op.errors for op in done.operations.values() if op.errors] == []
    assert sum(op.ok for op in done.operations.values()) == 200
    assert set(done.operations) == {kind.partition("=")[0] for kind in mix.split(",")}


def test_the_server_refuses_a_client_that_leaves_it_out(tmp_path: Path) -> None:
    done = played("native", "set=1", tmp_path, {})
    assert sum(op.ok for op in done.operations.values()) == 0
    assert sum(sum(op.errors.values()) for op in done.operations.values()) > 0


def test_the_space_is_of_the_text_protocol(tmp_path: Path) -> None:
    tape = worker_driver.write_tape(tmp_path, "--keys", "1", "--mix", "set=1", "--ops", "1")
    with deviant() as address, Worker(CLIENTS["native"].command) as worker:
        worker.hello(worker_driver.ANSWER_S)
        setup = worker_driver.patient(
            servers=[address], wire="meta", tape=str(tape), options={"trailing_space": "yes"}
        )
        refused = worker_driver.ask(worker, setup)
    assert isinstance(refused, Unsupported)
    assert "text protocol" in refused.reason
