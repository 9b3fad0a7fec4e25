"""Which tapes a Ruby client plays whose library does not say whether a delete found its key."""

import shutil
from pathlib import Path

import pytest

from cachemark.endpoints.client_readiness import query_worker
from cachemark.endpoints.clients import registry
from cachemark.host import process
from cachemark.model.protocol import Unsupported
from tests.workers import ruby_code, worker_driver

LOOK = """
require './lib/tape'
require './lib/deletes'
print Deletes.may_miss?(Tape.new(ARGV[0]), ARGV[1].to_i)
"""
THREE_KEYS = ("--key-names", "a,b,c")

pytestmark = pytest.mark.skipif(shutil.which("ruby") is None, reason="apt-get install ruby")


def may_miss(folder: Path, *arguments: str, lanes: int = 1) -> bool:
    tape = worker_driver.write_tape(folder, *arguments)
    said = ruby_code.printed(LOOK, str(tape), str(lanes))
    return {"true": True, "false": False}[said]


@pytest.mark.parametrize(
    ("sequence", "missed"),
    [
        ("set@0 get@1", False),
        ("set@1 delete@1", False),
        ("add@1 get@1 delete@1 set@1 delete@1", False),
        ("mset@0-1 delete@1 get@2", False),
        ("set@1 delete@1 delete@1", True),
        ("set@0 delete@1", True),
        # The first pass finds what the prefill has stored. The next may begin after any delete.
        ("delete@1 set@1", True),
        ("delete@0 get@0 delete@1 get@1 delete@2 get@2", True),
    ],
)
def test_a_delete_finds_what_its_caller_stored(sequence: str, missed: bool, tmp_path: Path) -> None:
    tape = (*THREE_KEYS, "--sequence", sequence, "--ops", "60")
    assert may_miss(tmp_path, *tape) is missed


def test_another_caller_may_have_deleted_the_key(tmp_path: Path) -> None:
    shared = (*THREE_KEYS, "--sequence", "set@1 delete@1", "--ops", "60")
    assert may_miss(tmp_path, *shared, lanes=2)
    own = ("--keys", "30", "--sequence", "set@0 delete@0", "--key-step", "1", "--ops", "60")
    assert not may_miss(tmp_path, *own, lanes=2)


def test_phases_delete_what_each_caller_has_stored(tmp_path: Path) -> None:
    keys = ("--keys", "20", "--distribution", "sequential", "--mix", "set=1,get=1,delete=1")
    assert not may_miss(tmp_path, *keys, "--order", "phases", "--ops", "60", lanes=2)


def test_random_deletes_may_miss(tmp_path: Path) -> None:
    assert may_miss(tmp_path, "--keys", "20", "--mix", "set=1,delete=1", "--ops", "60")


def test_memcached_store_refuses_before_it_connects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a library that has names and nothing else, and no server at the address."""
    lib = tmp_path / "lib" / "active_support" / "cache"
    lib.mkdir(parents=True)
    (lib / "memcached_store.rb").write_text("class ActiveSupport::Cache::MemcachedStore; end")
    (tmp_path / "lib" / "memcached.rb").write_text("class Memcached; VERSION = '1'; end")
    (tmp_path / "lib" / "memcached_store").mkdir()
    (tmp_path / "lib" / "memcached_store.rb").write_text("")
    (tmp_path / "lib" / "memcached_store" / "version.rb").write_text(
        "module MemcachedStore; VERSION = '1'; end"
    )
    monkeypatch.setenv("CACHEMARK_GEM_MEMCACHED_STORE", str(tmp_path))
    client = registry(process.binary_path())["ruby/memcached_store"]
    answer = query_worker(client)
    if answer.ready is None:  # no ActiveSupport
        pytest.skip(answer.state)
    tape = worker_driver.write_tape(tmp_path, "--keys", "3", "--mix", "delete=1", "--ops", "6")
    with worker_driver.started(client) as (worker, _):
        setup = worker_driver.patient(servers=["127.0.0.1:1"], wire="text", tape=str(tape))
        answer = worker_driver.ask(worker, setup)
    assert isinstance(answer, Unsupported)
    assert "may not be there" in answer.reason
