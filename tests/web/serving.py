"""A store of made-up runs, the server that shows it, and requests without a browser."""

import http.client
import ssl
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch
from urllib.parse import urlencode, urlsplit

import msgspec
import pytest

from cachemark.analysis.resilience.cell import CellOutcome, ResiliencePlan
from cachemark.analysis.resilience.verdict import ClientVerdict
from cachemark.cli.play import write_report
from cachemark.runs.resilience.stored import ResilienceRun, create_resilience_run
from cachemark.web.server import WebServer
from cachemark.web.settings import WebSettings
from tests.builders.hostile_text import TERMINAL, XML, hostile_run
from tests.builders.outcomes import measured
from tests.builders.stored_runs import kept, made_header, other_host, trials

# At the lowest priority, pages would starve beside the tests of other files: the servers of tests
# yield as little as they can.
NICENESS = 1
_PATIENT_S = 500
RUN, OTHER, HOSTILE, BROKEN = "first", "second", "hostile", "broken"
FAULTS, EMPTY = "faults", "empty"
# Tags, quotes and control characters, wherever a name can be.
HOSTILE_TEXTS = (*TERMINAL[:2], *XML[:3], "\"'><img src=x onerror=alert(1)>")


def made_store(root: Path) -> None:
    """Two runs of the same cells, one of a stranger, and one that cannot be read."""
    head = msgspec.structs.replace(made_header(RUN, 1), name="before the upgrade")
    run = kept(root, head, [*trials("a", 50_000), *trials("b", 40_000)])
    write_report(run)
    invalid = msgspec.structs.replace(measured("c", 0, 1000), verdict="INVALID", reasons=["noise"])
    other = made_header(OTHER, 2, host=other_host(name="elsewhere"))
    kept(root, other, [*trials("a", 60_000), *trials("b", 40_000), invalid])
    head, outcomes = hostile_run(HOSTILE_TEXTS)
    kept(root, msgspec.structs.replace(head, id=HOSTILE), outcomes)
    kept(root, made_header(EMPTY, 3), [])
    faulted(root)
    (root / BROKEN).mkdir()
    (root / BROKEN / "run.json").write_text('{"id": "<script>1</script>"}', encoding="utf-8")


def faulted(root: Path) -> None:
    """A run of `resilience`: two faults on a client, one of which it survives."""
    plan = ResiliencePlan(
        clients=["a"], profiles=["common"], faults=["frozen-1s", "restarted"], sittings=1
    )
    run = create_resilience_run(root, plan, other_host(), "does it freeze")
    header = msgspec.structs.replace(run.header, id=FAULTS)
    run.folder.rename(root / FAULTS)
    (root / FAULTS / "resilience.json").write_bytes(msgspec.json.encode(header))
    verdicts: tuple[ClientVerdict, ...] = ("safe", "hangs")
    for cell, verdict in zip(plan.cells(), verdicts, strict=True):
        ResilienceRun(folder=root / FAULTS, header=header).append(
            CellOutcome(name=cell, verdict=verdict)
        )


class Answer(NamedTuple):
    """A response."""

    status: int
    headers: Mapping[str, str]
    text: str


class Visitor:
    """Requests of one address. `cookie` is sent with each."""

    def __init__(self, address: str, settings: WebSettings) -> None:
        self.address, self.settings = address, settings
        self.cookie = ""

    def get(self, path: str, **headers: str) -> Answer:
        """A GET; the path is sent as it is."""
        return self._request("GET", path, b"", headers)

    def post(self, path: str, fields: dict[str, str] | bytes, **headers: str) -> Answer:
        """A POST as a form of our own pages sends it, but for what `headers` replaces."""
        own = {"origin": self.address, "x-cachemark-csrf": self.settings.csrf}
        if isinstance(fields, dict):
            fields = urlencode({"csrf": self.settings.csrf, **fields}).encode()
        return self._request("POST", path, fields, {**own, **headers})

    def _request(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        where = urlsplit(self.address)
        if where.scheme == "https":
            # Tests sign their certificates themselves.
            trusting = ssl.create_default_context()
            trusting.check_hostname = False
            trusting.verify_mode = ssl.CERT_NONE
            connection = http.client.HTTPSConnection(
                where.netloc, timeout=_PATIENT_S, context=trusting
            )
        else:
            connection = http.client.HTTPConnection(where.netloc, timeout=_PATIENT_S)
        if self.cookie:
            headers = {"cookie": self.cookie, **headers}
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            text = response.read().decode("utf-8", "replace")
        finally:
            connection.close()
        return Answer(response.status, {n.lower(): v for n, v in response.getheaders()}, text)


def verb_command(*arguments: str) -> list[str]:
    """The command of a verb whose server yields little."""
    lower = f"from cachemark.web import server, stored; server._NICENESS = {NICENESS}"
    lower += f"; stored.PATIENCE_S = {_PATIENT_S}"
    code = f"{lower}; import cachemark.__main__"
    return [sys.executable, "-c", code, *arguments]


@contextmanager
def served(root: Path, **changes: object) -> Iterator[Visitor]:
    """A server of a store, on a port that the system picks."""
    settings = msgspec.structs.replace(WebSettings(root=root), **changes)
    with (
        patch("cachemark.web.server._NICENESS", NICENESS),
        patch("cachemark.web.stored.PATIENCE_S", _PATIENT_S),
        WebServer(settings) as server,
    ):
        yield Visitor(server.address, settings)


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    """A visitor of the pages of the made store."""
    root = tmp_path_factory.mktemp("store") / "results"
    made_store(root)
    with served(root) as visitor:
        yield visitor
