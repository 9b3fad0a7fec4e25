"""The server's counts of bytes against the client's count of sent and received bytes."""

import msgspec
import pytest

from cachemark.analysis.verdict.transferred_bytes import byte_findings
from cachemark.model.experiment import Load
from cachemark.model.protocol import Done, Operation
from cachemark.model.server_stats import ServerStats

# 1,000 gets of 100 bytes and 500 sets, each key 20 bytes.
GETS = Operation(
    attempts=1000, ok=1000, hits=1000, keys=1000, key_bytes=20_000, value_bytes=100_000
)
SETS = Operation(attempts=500, ok=500, keys=500, key_bytes=10_000, value_bytes=50_000)
SENT, GOT = 80_000, 100_000
# The bytes that the client may send beside keys and values, in all and for each key and operation,
# and a twentieth of keys, twice, and values.
MOST = round((2 * 30_000 + 50_000) * 1.05) + 150 * 3000 + 65_536


def found(
    read: int, written: int, *, shared: bool = False, merges: bool = False, **kinds: Operation
) -> list[str]:
    done = Done(phase="measure", elapsed_ns=10**9, send_elapsed_ns=10**9, operations=kinds)
    findings = byte_findings(
        done,
        Load(name="l"),
        ServerStats({"bytes_read": "7", "bytes_written": "9"}),
        ServerStats({"bytes_read": str(7 + read), "bytes_written": str(9 + written)}),
        shared_server=shared,
        merges=merges,
    )
    return [f"{finding.weight}: {finding.text}" for finding in findings]


@pytest.mark.parametrize(
    ("read", "written", "said"),
    [
        (SENT, GOT, []),
        (SENT - 1, GOT, ["bytes_read rose by 79999, the client sent 80000"]),
        # Four mean replies of one caller can be late.
        (SENT, GOT - 400, []),
        (SENT, GOT - 401, ["bytes_written rose by 99599, the client got 100000"]),
        (MOST, 10 * GOT, []),
        (MOST + 1, GOT, ["bytes_read rose by"]),
    ],
)
def test_bounds(read: int, written: int, said: list[str]) -> None:
    texts = found(read, written, get=GETS, set=SETS)
    assert len(texts) == len(said)
    for text, part in zip(texts, said, strict=True):
        assert text.startswith("INVALID")
        assert part in text


def test_more_bytes_are_allowed_at_a_shared_server_fewer_never() -> None:
    assert found(MOST + 1, GOT, shared=True, get=GETS, set=SETS)[0].startswith("note")
    assert found(SENT - 1, GOT, shared=True, get=GETS, set=SETS)[0].startswith("INVALID")


def test_a_client_that_merges_reads_must_send_its_writes() -> None:
    assert found(60_000, 0, merges=True, get=GETS, set=SETS)[0].startswith("note")
    assert found(59_999, GOT, merges=True, get=GETS, set=SETS)[0].startswith("INVALID")


def test_bytes_of_failures_and_refused_stores_have_no_upper_bound() -> None:
    failed = msgspec.structs.replace(SETS, attempts=501, errors={"timeout": 1})
    refused = msgspec.structs.replace(SETS, not_stored=1)
    assert found(10**9, GOT, get=GETS, set=failed) == []
    assert found(10**9, GOT, get=GETS, add=refused) == []


def test_a_fetch_sends_or_gets_its_value() -> None:
    assert found(20_000, 0, fetch=GETS) == []
    assert found(150_000, 0, fetch=GETS) == []
    assert found(19_999, 0, fetch=GETS) != []
