"""The judge is proved: a client for each way to be wrong is played, and is caught by its rule."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cachemark.analysis.resilience.cell import CellName
from cachemark.endpoints.clients import Client, ClientSpec
from cachemark.model.faults import Caller, Fault, Freeze, Impostor, LoseOne, MoveName, Proxy
from cachemark.runs.resilience.injection import private_names_missing
from cachemark.runs.resilience.play import _BROKEN_BY_WAITING, CellPlayer
from tests.conftest import ROOT

pytestmark = [
    pytest.mark.slow("a client and a server for each way to be wrong, for 5 to 10 s"),
    pytest.mark.skipif(shutil.which("memcached") is None, reason="apt-get install memcached"),
]

_MOST_PLAYS = 4
IDLE_CLOSE = Proxy(fault={"kind": "idle-close", "idle_ms": 5})


def fault(
    make: Freeze | Proxy | MoveName | LoseOne | Impostor | Caller,
    during_ms: int = 1200,
    after_at_most_ms: int = 1,
) -> Fault:
    # All keys come again within 3 s: then a value that is stored elsewhere is missed. Callers that
    # fork are late, and no child may be left at the end.
    after_ms = 3500 if isinstance(make, LoseOne | Caller) else 1500
    return Fault(
        name="fault",
        group="server",
        about="",
        make=make,
        before_ms=500,
        during_ms=during_ms,
        after_ms=after_ms,
        after_at_most_ms=after_at_most_ms,
        serves=make == IDLE_CLOSE,
    )


FROZEN = fault(Freeze())
LONG_FROZEN = fault(Freeze(), during_ms=5500)
CUT = fault(Proxy(fault={"kind": "close-in-value", "share": 0.1, "after_bytes": 50}))
IDLE_CLOSED = fault(IDLE_CLOSE)
OTHER_KEY = fault(Proxy(fault={"kind": "other-key", "share": 0.1}))
FORKED = fault(Caller(way="fork", every=4, after_ms=60, delay_ms=100), during_ms=700)
# A get must follow an interrupted get: two interruptions may have none, half a dozen have one.
INTERRUPTED = fault(Caller(way="interrupt", every=4, after_ms=20, delay_ms=100), during_ms=2100)
MOVED = fault(MoveName())
AWAY = fault(LoseOne(keeps_data=True))
LOST = fault(LoseOne(keeps_data=False))
UNTRUSTED = fault(Impostor(certificate="untrusted"))
OTHER_HOST = fault(Impostor(certificate="other-host"))
EXPIRED = fault(Impostor(certificate="expired"))
TLS = [UNTRUSTED, OTHER_HOST, EXPIRED]
# The client, the fault, and the rule that must be broken. The perfect client keeps all of them.
CAUGHT = [
    ("next_reply", FROZEN, "wrong value"),
    ("waits", LONG_FROZEN, "longest call"),
    ("retries", LONG_FROZEN, "longest call"),
    ("hides_errors", FROZEN, "errors as misses"),
    ("leaks", FROZEN, "descriptors"),
    ("storms", FROZEN, "reconnects"),
    ("any_key", OTHER_KEY, "wrong value"),
    ("any_key", FORKED, "wrong value"),
    ("keeps_interrupted", INTERRUPTED, "wrong value"),
    ("accepts_parts", CUT, "wrong value"),
    ("resolves_once", MOVED, "no recovery"),
    ("moves_keys", AWAY, "stale value"),
    ("fails_all", LOST, "needless failures"),
    ("rests", IDLE_CLOSED, "needless failures"),
    ("leaves_threads", FROZEN, "threads"),
    ("trusts_all", UNTRUSTED, "untrusted server"),
    ("trusts_all", EXPIRED, "untrusted server"),
    ("trusts_names", OTHER_HOST, "untrusted server"),
]


def miniature(way: str, folder: Path) -> Client:
    """A miniature in Python whose calls block."""
    source = Path(__file__).with_name("miniature.py").read_text(encoding="utf-8")
    worker = worker_with("python", f"{way}.py", source, folder)
    command = [sys.executable, str(worker / "worker.py"), way]
    return Client(id=f"python/{way}", language="python", command=command)


def worker_with(language: str, name: str, source: str, folder: Path) -> Path:
    """A copy of the worker of a language with one more client file."""
    worker = folder / "worker"
    ignored = shutil.ignore_patterns(".*", "__pycache__", "gems")
    shutil.copytree(ROOT / "workers" / language, worker, ignore=ignored)
    (worker / "clients" / name).write_text(source, encoding="utf-8")
    return worker


def broken_rules(client: Client, folder: Path, fault: Fault, *, surely: bool = False) -> set[str]:
    """Play a client, and return the rules that it broke.

    It is played again where the machine disturbed it, as `cachemark resilience` does. `surely`:
    without the rules that it may have broken because it got no CPU even then.
    """
    if isinstance(fault.make, MoveName) and (reason := private_names_missing()):
        pytest.skip(reason)
    name = CellName(client=client.id, profile="common", fault=fault.name, sitting=1)
    spec = ClientSpec(text=client.id, client=client)
    outcome = CellPlayer(folder).play(spec, name, fault)
    for _ in range(_MOST_PLAYS - 1):
        if not (outcome.disturbed or outcome.failed):
            break
        outcome = CellPlayer(folder).play(spec, name, fault)
    assert outcome.figures is not None, f"{outcome.unsupported}{outcome.failed}"
    # The fault was felt: otherwise nothing would be proved.
    figures = outcome.figures
    assert figures.first_error_ms is not None or figures.connections or outcome.findings
    rules = {finding.rule for finding in outcome.findings}
    return rules - set(_BROKEN_BY_WAITING) if surely and outcome.disturbed else rules


@pytest.mark.parametrize(("way", "fault", "rule"), CAUGHT)
def test_a_client_that_is_wrong_is_caught(
    way: str, fault: Fault, rule: str, tmp_path: Path
) -> None:
    assert rule in broken_rules(miniature(way, tmp_path), tmp_path, fault)


@pytest.mark.parametrize(
    "fault",
    [FROZEN, CUT, IDLE_CLOSED, OTHER_KEY, FORKED, INTERRUPTED, MOVED, AWAY, LOST, *TLS],
    ids=[
        "frozen", "cut", "idle_closed", "other", "forked", "interrupted", "moved", "away", "lost",
        "untrusted", "other_host", "expired",
    ],
)  # fmt: skip
def test_a_client_that_does_nothing_wrong_is_not(fault: Fault, tmp_path: Path) -> None:
    never = {rule for _, _, rule in CAUGHT}
    perfect = miniature("perfect", tmp_path)
    assert not never & broken_rules(perfect, tmp_path, fault, surely=True)


def test_a_client_whose_process_dies_in_a_call_is_caught(tmp_path: Path) -> None:
    client = miniature("crashes", tmp_path)
    name = CellName(client=client.id, profile="common", fault="fault", sitting=1)
    outcome = CellPlayer(tmp_path).play(ClientSpec(text=client.id, client=client), name, FROZEN)
    assert (outcome.verdict, outcome.failed) == ("hangs", "")
    assert [(each.rule, "signal 6" in each.why) for each in outcome.findings] == [("crash", True)]


def test_a_client_that_rests_is_watched_until_it_is_back(tmp_path: Path) -> None:
    """It leaves its server alone for 4 s after a failure: longer than each client plays."""
    watched = fault(Freeze(), after_at_most_ms=60_000)
    rests = miniature("rests", tmp_path)
    assert "no recovery" not in broken_rules(rests, tmp_path, watched, surely=True)


def test_a_client_resting_beyond_the_watch_is_not_back(tmp_path: Path) -> None:
    assert "no recovery" in broken_rules(miniature("rests", tmp_path), tmp_path, FROZEN)


def async_miniature(way: str, folder: Path) -> Client:
    """A miniature in Python whose calls are awaited."""
    source = Path(__file__).with_name("async_miniature.py").read_text(encoding="utf-8")
    worker = worker_with("python", f"{way}.py", source, folder)
    command = [sys.executable, str(worker / "worker.py"), way]
    return Client(id=f"python/{way}", language="python", command=command, concurrency="tasks")


def ruby_miniature(way: str, folder: Path) -> Client:
    """The toy client in Ruby, which closes its connection after a time-out, or does not."""
    source = toy("toy.rb", way, closing="    @handle.close\n")
    worker = worker_with("ruby", f"{way}.rb", source, folder)
    command = ["ruby", str(worker / "worker.rb"), way]
    return Client(id=f"ruby/{way}", language="ruby", command=command)


def php_miniature(way: str, folder: Path) -> Client:
    """The toy client in PHP, which closes the connection of a call without an end, or does not."""
    source = toy("toy.php", way, closing="        $this->isInCall && $this->close();\n")
    worker = worker_with("php", f"{way}.php", source, folder)
    command = ["php", str(worker / "worker.php"), way]
    return Client(id=f"php/{way}", language="php", command=command, concurrency="forks")


def toy(name: str, way: str, *, closing: str) -> str:
    """The source of a toy client, which closes connections, or `keeps` them."""
    source = (ROOT / "tests/workers/toy_clients" / name).read_text(encoding="utf-8")
    assert closing in source
    return source if way == "closes" else source.replace(closing, "")


CANCELLED = fault(Caller(way="cancel", every=5, after_ms=10, delay_ms=50))
KILLED = fault(Caller(way="kill", every=5, after_ms=10, delay_ms=50))
EXHAUSTED = fault(Caller(way="exhaust", every=5, after_ms=1, delay_ms=50))
GIVEN_UP = [
    pytest.param(async_miniature, CANCELLED, id="cancelled"),
    pytest.param(
        ruby_miniature,
        KILLED,
        id="killed",
        marks=pytest.mark.skipif(shutil.which("ruby") is None, reason="apt-get install ruby"),
    ),
    pytest.param(
        php_miniature,
        EXHAUSTED,
        id="exhausted",
        marks=pytest.mark.skipif(shutil.which("php") is None, reason="apt-get install php-cli"),
    ),
]


@pytest.mark.parametrize(("make", "fault"), GIVEN_UP)
def test_a_connection_kept_after_giving_up_is_caught(
    make: Callable[[str, Path], Client], fault: Fault, tmp_path: Path
) -> None:
    assert "wrong value" in broken_rules(make("keeps", tmp_path), tmp_path, fault)


@pytest.mark.parametrize(("make", "fault"), GIVEN_UP)
def test_a_connection_closed_after_giving_up_is_not_caught(
    make: Callable[[str, Path], Client], fault: Fault, tmp_path: Path
) -> None:
    rules = broken_rules(make("closes", tmp_path), tmp_path, fault, surely=True)
    assert not {"wrong value", "stale value", "lost call", "no recovery"} & rules
