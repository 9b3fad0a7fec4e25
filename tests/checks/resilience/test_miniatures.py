"""The judge is proved: a client for each way to be wrong is played, and is caught by its rule."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from cachemark.checks.resilience.cell import CellName
from cachemark.checks.resilience.faults import Caller, Fault, Freeze, LoseOne, MoveName, Proxy
from cachemark.checks.resilience.play import CellPlayer
from cachemark.checks.resilience.private_name import private_names_missing
from cachemark.endpoints.clients import Client, ClientSpec
from tests.conftest import ROOT

pytestmark = [
    pytest.mark.slow("a client and a server for each way to be wrong, for 5 to 10 s"),
    pytest.mark.skipif(shutil.which("memcached") is None, reason="apt-get install memcached"),
]


def fault(make: Freeze | Proxy | MoveName | LoseOne | Caller, during_ms: int = 1200) -> Fault:
    # All keys come again within 3 s: then a value that is stored elsewhere is missed. Callers that
    # fork are late, and no child may be left at the end.
    after_ms = 3500 if isinstance(make, LoseOne | Caller) else 1500
    return Fault(
        name="fault", about="", make=make, before_ms=500, during_ms=during_ms, after_ms=after_ms
    )


FROZEN = fault(Freeze())
LONG_FROZEN = fault(Freeze(), during_ms=5500)
CUT = fault(Proxy(fault={"kind": "close-in-value", "share": 0.1, "after_bytes": 50}))
OTHER_KEY = fault(Proxy(fault={"kind": "other-key", "share": 0.1}))
FORKED = fault(Caller(way="fork", every=4, after_ms=60, delay_ms=100), during_ms=700)
MOVED = fault(MoveName())
AWAY = fault(LoseOne(keeps_data=True))
LOST = fault(LoseOne(keeps_data=False))
# The client, the fault, and the rule that must be broken. The perfect client breaks none of them.
CAUGHT = [
    ("next_reply", FROZEN, "wrong value"),
    ("waits", LONG_FROZEN, "longest call"),
    ("retries", LONG_FROZEN, "longest call"),
    ("hides_errors", FROZEN, "errors as misses"),
    ("leaks", FROZEN, "descriptors"),
    ("storms", FROZEN, "reconnects"),
    ("any_key", OTHER_KEY, "wrong value"),
    ("any_key", FORKED, "wrong value"),
    ("accepts_parts", CUT, "wrong value"),
    ("resolves_once", MOVED, "no recovery"),
    ("moves_keys", AWAY, "stale value"),
    ("fails_all", LOST, "other servers"),
]


def broken_rules(way: str, folder: Path, fault: Fault) -> set[str]:
    """Play a miniature, and return the rules that it broke."""
    if isinstance(fault.make, MoveName) and (reason := private_names_missing()):
        pytest.skip(reason)
    worker = folder / "worker"
    shutil.copytree(
        ROOT / "workers/python", worker, ignore=shutil.ignore_patterns(".*", "__pycache__")
    )
    shutil.copy(Path(__file__).with_name("miniature.py"), worker / "clients" / f"{way}.py")
    client = Client(
        id=f"python/{way}",
        language="python",
        command=[sys.executable, str(worker / "worker.py"), way],
    )
    name = CellName(client=client.id, profile="common", fault=fault.name, sitting=1)
    spec = ClientSpec(text=client.id, client=client)
    outcome = CellPlayer(folder).play(spec, name, fault)
    assert outcome.figures is not None, f"{outcome.unsupported}{outcome.failed}"
    # The fault was felt: otherwise nothing would be proved.
    assert outcome.figures.first_error_ms is not None or outcome.findings
    return {finding.rule for finding in outcome.findings}


@pytest.mark.parametrize(("way", "fault", "rule"), CAUGHT)
def test_a_client_that_is_wrong_is_caught(
    way: str, fault: Fault, rule: str, tmp_path: Path
) -> None:
    assert rule in broken_rules(way, tmp_path, fault)


@pytest.mark.parametrize(
    "fault",
    [FROZEN, CUT, OTHER_KEY, FORKED, MOVED, AWAY, LOST],
    ids=["frozen", "cut", "other", "forked", "moved", "away", "lost"],
)
def test_a_client_that_does_nothing_wrong_is_not(fault: Fault, tmp_path: Path) -> None:
    never = {rule for _, _, rule in CAUGHT}
    assert not never & broken_rules("perfect", tmp_path, fault)
