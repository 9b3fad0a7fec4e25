"""constcache's claims in words, judged by made-up figures of today."""

from __future__ import annotations

import msgspec

from cachemark.model.outcome import Outcome
from cachemark.report.model import Section
from tests.report.test_published import outcome, tables

SUITE = "inprocess-vs-network"
SHARED = "php/shared-store?memory=2g&hash_power="
COMPRESSED = "php/memcached?compression=on&compression_threshold=100"


def trial(client: str, workload: str, times: float, store_bytes: int | None = None) -> Outcome:
    """A trial whose calls take so many times a microsecond."""
    base = outcome(SUITE, client, workload, "10-processes")
    assert base.measure
    (kind, done), *_ = base.measure.operations.items()
    slower = msgspec.structs.replace(done, busy_ns=round(times * 1000 * done.ok))
    measure = msgspec.structs.replace(
        base.measure, operations={kind: slower}, store_bytes=store_bytes
    )
    return msgspec.structs.replace(base, measure=measure)


def claims(*trials: Outcome) -> list[str]:
    section: Section
    (section,) = tables(SUITE, *trials)
    return [note.partition(": ")[2] for note in section.notes if note.startswith("claim of")]


def test_each_claim_of_writes_is_judged_by_the_ratio_of_today() -> None:
    found = claims(
        trial(f"{SHARED}16", "set-10", 1.2),
        trial(f"{SHARED}20", "set-10", 1.0, store_bytes=2**20),
        trial(COMPRESSED, "set-10", 20),
        trial("php/memcached", "set-10", 0.9),
    )
    assert found == [
        "its writes are not better than those of uncompressed memcached. Here: yes, 0.9 × as fast",
        "its writes are more than 30 % faster than those of compressed memcached. "
        "Here: yes, 20 × as fast",
        "its writes are more than 30 % faster than those of constcache(16). "
        "Here: no, 1.2 × as fast",
        found[-1],
    ]
    assert found[-1].startswith("it takes less memory than uncompressed memcached. Here: ")
    assert "1 MB of the store's own account against" in found[-1]


def test_reads_have_a_claim_of_their_own() -> None:
    shared, network = trial(f"{SHARED}20", "get-10", 1.0), trial(COMPRESSED, "get-10", 79)
    assert claims(shared, network) == [
        "its reads are more than 80 × as fast as those of compressed memcached. "
        "Here: no, 79 × as fast"
    ]
    (said,) = claims(shared, trial(COMPRESSED, "get-10", 81))
    assert said.endswith("Here: yes, 81 × as fast")


def test_a_claim_without_both_of_its_rows_is_not_judged() -> None:
    assert claims(trial(f"{SHARED}20", "set-10", 1.0)) == []
    assert claims(trial(COMPRESSED, "set-10", 1.0)) == []
