"""`cachemark clients` and `servers` in narrow terminals; what a client lacks has a reason."""

import pytest

from cachemark.cli import clients
from cachemark.cli.servers import form_lines
from cachemark.endpoints.clients import registry
from cachemark.endpoints.servers import kinds
from cachemark.host import process
from cachemark.model.protocol import Ready
from cachemark.report.document import Table
from cachemark.report.terminal import fitting
from tests.workers import worker_driver

NETWORK = [one for one in registry(process.binary_path()).values() if not one.in_process]
LIBRARY = ["library-of-20-bytes", "v0.0.0-20260422231931-4d751bb6e37c", "2026-10"]
ROWS = [
    [one.id, *LIBRARY, "text", "TLS", "SASL", one.concurrency, "ready " * 20, "", "", ""]
    for one in NETWORK
]


@pytest.mark.parametrize(
    ("width", "left_out"),
    [
        (240, set[str]()),
        (140, {"library"}),
        (80, {"library", "callers", "released", "login", "version"}),
    ],
)
def test_a_narrow_terminal_has_whole_columns(width: int, left_out: set[str]) -> None:
    table = Table(columns=clients._COLUMNS, rows=ROWS).only(range(9))  # pyright: ignore[reportPrivateUsage]
    shown = fitting(table, width)
    assert set(table.titles) - set(shown.titles) == left_out
    *whole, _ = zip(*shown.rows, strict=True)
    assert sum(max(map(len, cells)) + 2 for cells in whole) + 20 <= width


def test_a_client_without_tls_or_logins_has_a_reason() -> None:
    told: dict[str, Ready] = {
        one.id: ready for one in NETWORK if (ready := worker_driver.claims(one.id))
    }
    assert told
    for one in NETWORK:
        if one.id not in told or one.language in ("native", "reference"):
            continue
        claimed = told[one.id].capabilities
        logs_in = {"login_sasl", "login_text"} & set(claimed)
        assert ("TLS" in one.lacks) == ("tls" not in claimed), one.id
        assert logs_in or "logins" in one.lacks, one.id


def test_the_form_of_a_server_breaks_between_options() -> None:
    for kind in kinds():
        lines = form_lines(kind.form, 80)
        assert max(map(len, lines)) <= 78, kind.name
        assert "".join(lines).replace(" ", "") == kind.form.replace(" ", "")
    first, *rest = form_lines("memcached[:threads=N,memory=64m,connections=N]", 30)
    assert (first, rest) == ("memcached[:threads=N,", ["memory=64m,connections=N]"])
