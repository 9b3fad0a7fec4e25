"""Hits are shown where the window did not play its tape again, or where that changes nothing."""

from typing import Any

import msgspec
import pytest

from cachemark.analysis.statistics.summary import summarise
from cachemark.analysis.verdict import hits_withheld, repeated_tape
from cachemark.model.experiment import Workload
from cachemark.model.outcome import Outcome
from cachemark.model.protocol import Done, Operation
from cachemark.model.tape_facts import Dependence, KeyReuse, TapeFacts
from tests.builders.outcomes import measured

_OPS = 1000


def _done(attempts: int, misses: int) -> Done:
    hits = attempts - misses
    of = Operation(attempts=attempts, ok=attempts, hits=hits, misses=misses, keys=attempts)
    window = measured("native", 0, 1000).measure
    assert window is not None
    return msgspec.structs.replace(window, operations={"fetch": of})


def _trial(
    kept: Dependence,
    *,
    lost: Dependence = "open",
    fills: bool = True,
    warm: int = 0,
    played: int = _OPS,
    misses: int = 10,
    evictions: str = "0",
    **workload: Any,
) -> Outcome:
    reuse = KeyReuse(used_keys=9, fills=fills, kept=kept, lost=lost)
    tape = TapeFacts(seed=1, sha256="", ops=_OPS, keys=9, period_ns=0, arguments=[], reuse=reuse)
    return msgspec.structs.replace(
        measured("native", 0, 1000),
        workload=Workload(name="w", mix={"fetch": 1}, **workload),
        tape=tape,
        warmup=_done(warm, 0) if warm else None,
        measure=_done(played, misses),
        stats_after={"evictions": evictions} if evictions else {},
    )


@pytest.mark.parametrize(
    ("trial", "withheld"),
    [
        (_trial("open"), False),
        (_trial("open", played=_OPS + 1), True),
        (_trial("open", warm=1, played=10), True),
        # Everything that it asks for was stored, and no fetch has stored it.
        (_trial("open", fills=False, played=9 * _OPS, misses=0), False),
        (_trial("open", played=9 * _OPS, misses=0), True),
        (_trial("covered", played=9 * _OPS), False),
        (_trial("covered", warm=500, played=9 * _OPS), True),
        (_trial("covered", warm=_OPS, played=9 * _OPS), False),
        (_trial("never", warm=500, played=9 * _OPS), False),
        # A server that evicts, or that does not say so, may have lost any key.
        (_trial("never", played=9 * _OPS, evictions="7"), True),
        (_trial("never", played=9 * _OPS, evictions=""), True),
        (_trial("never", played=9 * _OPS, exptime_s=5), True),
        (_trial("never", lost="covered", played=9 * _OPS, evictions="7"), False),
        # The workload says how often its tape is played.
        (_trial("open", played=3 * _OPS, passes=3), False),
        (_trial("open", warm=1, played=3 * _OPS, passes=3), True),
    ],
)
def test_hits_are_withheld_where_a_repeated_tape_shapes_them(
    trial: Outcome, withheld: bool
) -> None:
    assert bool(repeated_tape(trial).findings) is withheld


@pytest.mark.parametrize(
    ("trial", "remedy"),
    [
        (_trial("covered", warm=500, played=9 * _OPS), "with them, which finds"),
        (_trial("open", warm=1, played=10), "with them, which finds"),
        (_trial("open", warm=500, played=9 * _OPS), "workloads.records = 20000"),
        (_trial("open", played=9 * _OPS), "workloads.records = 20000"),
    ],
)
def test_the_remedy_is_what_would_show_the_hits(trial: Outcome, remedy: str) -> None:
    (finding,) = repeated_tape(trial).findings
    assert remedy in finding.text


def test_a_trial_without_facts_about_its_keys_is_unchanged() -> None:
    old = _trial("open", played=9 * _OPS)
    assert old.tape is not None
    before = msgspec.structs.replace(old, tape=msgspec.structs.replace(old.tape, reuse=None))
    assert not repeated_tape(before).findings


def test_withheld_hits_are_in_no_summary() -> None:
    trial = _trial("open", played=2500)
    judged = msgspec.structs.replace(trial, findings=repeated_tape(trial).findings)
    assert hits_withheld(judged)
    (finding,) = judged.findings
    assert (finding.weight, finding.figure) == ("withheld", 2.5)
    assert "workloads.records = 4000" in finding.text
    (summary,) = summarise([judged])
    assert [(kind.hits, kind.misses) for kind in summary.kinds] == [(None, None)]
    (shown,) = summarise([trial])
    assert [(kind.hits, kind.misses) for kind in shown.kinds] == [(2490, 10)]
