"""constcache's claims in words, judged by made-up figures of today."""

import re

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


# How much each block's machine is slower than the first's: it cancels in a ratio.
BLOCKS = (1.0, 1.3, 0.9)


def trials(
    client: str,
    workload: str,
    *times: float,
    store_bytes: int | None = None,
    load: str = "50-processes",
) -> list[Outcome]:
    """Trials whose calls take these numbers of microseconds; a single one is for each block."""
    each = [times[0] * machine for machine in BLOCKS] if len(times) == 1 else times
    found: list[Outcome] = []
    for block, microseconds in enumerate(each):
        base = outcome(SUITE, client, workload, load, block)
        assert base.measure
        (kind, done), *_ = base.measure.operations.items()
        slower = msgspec.structs.replace(done, busy_ns=round(microseconds * 1_000_000 * done.ok))
        measure = msgspec.structs.replace(
            base.measure, operations={kind: slower}, store_bytes=store_bytes
        )
        place = msgspec.structs.replace(base.trial, block=block)
        found.append(msgspec.structs.replace(base, measure=measure, trial=place))
    return found


def claims(*cells: list[Outcome]) -> list[tuple[str, str]]:
    """The claims that were judged, each with its answer."""
    section: Section
    (section,) = tables(SUITE, *(one for cell in cells for one in cell))
    said = [note.removeprefix("claim: ") for note in section.notes if note.startswith("claim: ")]
    parts = [note.partition(". Here: ") for note in said]
    return [(claim, answer) for claim, _, answer in parts]


def answers(*cells: list[Outcome]) -> list[str]:
    """The answers, without their intervals."""
    return [re.sub(r" \(\S+–\S+\)", "", answer) for _, answer in claims(*cells)]


def test_each_claim_about_writes_is_judged_by_todays_figures() -> None:
    cells = [
        trials(f"{SHARED}16", "set-50", 1.2, store_bytes=2**20),
        trials(f"{SHARED}20", "set-50", 1.0, store_bytes=5 * 2**18),
        trials(COMPRESSED, "set-50", 20),
        trials("php/memcached", "set-50", 0.9),
    ]
    assert answers(*cells) == [
        "php/shared-store: yes, 0.9 × as fast",
        "php/shared-store: yes, 20 × as fast",
        "php/shared-store: no, 1.2 × as fast",
        "php/shared-store: yes, 0.625 × the server's resident size, by its own account",
        "php/shared-store: no, 1.25 × the memory",
    ]
    assert claims(*cells)[0][0] == (
        "the writes of constcache(20) are not better than those of uncompressed memcached"
    )


def test_constcache_s_own_store_is_judged_too() -> None:
    assert answers(
        trials(f"{SHARED}16", "set-50", 1.2),
        trials(f"{SHARED}20", "set-50", 1.0),
        trials(f"{OWN}16", "set-50", 18, store_bytes=100),
        trials(f"{OWN}20", "set-50", 10, store_bytes=109),
    ) == [
        "php/shared-store: no, 1.2 × as fast; php/constcache, its own store: yes, 1.8 × as fast",
        "php/constcache, its own store: yes, 1.09 × the memory",
    ]


def test_reads_have_claims_of_their_own() -> None:
    shared = trials(f"{SHARED}20", "get-50", 1.0)
    assert answers(shared, trials(COMPRESSED, "get-50", 79)) == [
        "php/shared-store: no, 79 × as fast"
    ]
    assert answers(shared, trials(COMPRESSED, "get-50", 81)) == [
        "php/shared-store: yes, 81 × as fast"
    ]
    assert answers(
        shared, trials(f"{SHARED}16", "get-50", 11), trials("php/memcached", "get-50", 23)
    ) == ["php/shared-store: no, 23 × as fast", "php/shared-store: yes, 11 × as fast"]


def test_a_claim_whose_interval_has_its_limit_is_not_settled() -> None:
    noisy = trials(COMPRESSED, "get-50", 60, 120, 90)
    assert answers(trials(f"{SHARED}20", "get-50", 1, 1, 1), noisy) == [
        "php/shared-store: not settled, 86.5 × as fast"
    ]


def test_a_single_pair_of_trials_settles_no_claim() -> None:
    one, other = trials(f"{SHARED}20", "get-50", 1), trials(COMPRESSED, "get-50", 500)
    assert answers(one[:1], other[:1]) == [
        "php/shared-store: not settled (a single pair of trials), 500 × as fast"
    ]


def test_few_processes_do_not_settle_claims_about_high_concurrency() -> None:
    low = "10-processes"
    assert answers(
        trials(f"{SHARED}20", "set-10", 1.0, load=low),
        trials(COMPRESSED, "set-10", 20, load=low),
        trials("php/memcached", "set-10", 0.9, load=low),
    ) == [
        "php/shared-store: yes, 0.9 × as fast",
        "php/shared-store: not settled (it is about 50 processes and more), 20 × as fast",
    ]


def test_a_claim_without_both_of_its_rows_is_not_judged() -> None:
    assert claims(trials(f"{SHARED}20", "set-50", 1.0)) == []
    assert claims(trials(COMPRESSED, "set-50", 1.0)) == []


@pytest.mark.parametrize(("table", "workload"), [("writes", "set-50"), ("reads", "get-50")])
def test_every_claim_of_the_page_is_judged(table: str, workload: str) -> None:
    """The claims of docs/originals.md: five of writes and memory, three of reads."""
    clients = [f"{SHARED}16", f"{SHARED}20", COMPRESSED, "php/memcached"]
    found = claims(*(trials(client, workload, 1.0, store_bytes=2**20) for client in clients))
    page = (ROOT / "docs" / "originals.md").read_text(encoding="utf-8")
    rows = page.partition("| the claim | its figures |")[2].partition("\n\n")[0].splitlines()[2:]
    of_reads = [row for row in rows if "reads" in row.partition(" | ")[0]]
    assert len(found) == (len(of_reads) if table == "reads" else len(rows) - len(of_reads))
