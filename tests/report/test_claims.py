"""constcache's claims in words, judged by made-up figures of today."""

from __future__ import annotations

import msgspec
import pytest

from cachemark.model.outcome import Outcome
from cachemark.report.model import Section
from tests.conftest import ROOT
from tests.report.test_published import outcome, tables

SUITE = "inprocess-vs-network"
SHARED = "php/shared-store?memory=2g&hash_power="
OWN = "php/constcache?memory=2g&hash_power="
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


def claims(*trials: Outcome) -> list[tuple[str, str]]:
    """The claims that were judged, each with its answer."""
    section: Section
    (section,) = tables(SUITE, *trials)
    said = [note.removeprefix("claim: ") for note in section.notes if note.startswith("claim: ")]
    parts = [note.partition(". Here: ") for note in said]
    return [(claim, answer) for claim, _, answer in parts]


def test_each_claim_of_writes_is_judged_by_the_figures_of_today() -> None:
    found = claims(
        trial(f"{SHARED}16", "set-10", 1.2, store_bytes=2**20),
        trial(f"{SHARED}20", "set-10", 1.0, store_bytes=5 * 2**18),
        trial(COMPRESSED, "set-10", 20),
        trial("php/memcached", "set-10", 0.9),
    )
    assert [answer for _, answer in found] == [
        "php/shared-store: yes, 0.9 × as fast",
        "php/shared-store: yes, 20 × as fast",
        "php/shared-store: no, 1.2 × as fast",
        found[3][1],
        "php/shared-store: no, 25 % more",
    ]
    assert found[0][0] == (
        "the writes of constcache(20) are not better than those of uncompressed memcached"
    )
    assert "1.25 MB of its own account against" in found[3][1]


def test_constcache_s_own_store_is_judged_too() -> None:
    found = claims(
        trial(f"{SHARED}16", "set-10", 1.2),
        trial(f"{SHARED}20", "set-10", 1.0),
        trial(f"{OWN}16", "set-10", 18, store_bytes=100),
        trial(f"{OWN}20", "set-10", 10, store_bytes=109),
    )
    assert [answer for _, answer in found] == [
        "php/shared-store: no, 1.2 × as fast; php/constcache, its own store: yes, 1.8 × as fast",
        "php/constcache, its own store: yes, 9 % more",
    ]


def test_reads_have_claims_of_their_own() -> None:
    shared, network = trial(f"{SHARED}20", "get-10", 1.0), trial(COMPRESSED, "get-10", 79)
    (said,) = claims(shared, network)
    assert said == (
        "the reads of constcache(20) are more than 80 × as fast as those of compressed memcached",
        "php/shared-store: no, 79 × as fast",
    )
    (said,) = claims(shared, trial(COMPRESSED, "get-10", 81))
    assert said[1] == "php/shared-store: yes, 81 × as fast"
    found = claims(shared, trial(f"{SHARED}16", "get-10", 11), trial("php/memcached", "get-10", 23))
    assert [answer for _, answer in found] == [
        "php/shared-store: no, 23 × as fast",
        "php/shared-store: yes, 11 × as fast",
    ]


def test_a_claim_without_both_of_its_rows_is_not_judged() -> None:
    assert claims(trial(f"{SHARED}20", "set-10", 1.0)) == []
    assert claims(trial(COMPRESSED, "set-10", 1.0)) == []


@pytest.mark.parametrize(("table", "workload"), [("writes", "set-10"), ("reads", "get-10")])
def test_every_claim_of_the_page_is_judged(table: str, workload: str) -> None:
    """The claims of docs/originals.md: five of writes and memory, three of reads."""
    clients = [f"{SHARED}16", f"{SHARED}20", COMPRESSED, "php/memcached"]
    found = claims(*(trial(client, workload, 1.0, store_bytes=2**20) for client in clients))
    page = (ROOT / "docs" / "originals.md").read_text(encoding="utf-8")
    rows = page.partition("| the claim | its figures |")[2].partition("\n\n")[0].splitlines()[2:]
    of_reads = [row for row in rows if "reads" in row.partition(" | ")[0]]
    assert len(found) == (len(of_reads) if table == "reads" else len(rows) - len(of_reads))
