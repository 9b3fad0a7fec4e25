"""Pages of stored runs, asked for without a browser."""

import shutil
import socket
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from cachemark.model.errors import UsageError
from cachemark.report.history.index import RunIndex
from cachemark.runs.resilience.stored import RunFolder
from cachemark.runs.storage.archive import export_run
from cachemark.runs.storage.store import INDEX, open_run, run_names
from cachemark.web.server import bound_socket
from cachemark.web.settings import WebSettings
from tests.builders.hostile_text import is_unsafe
from tests.cli.in_process import Inside
from tests.web.serving import (
    BROKEN,
    EMPTY,
    HOSTILE,
    OTHER,
    RUN,
    Visitor,
    served,
    visitor,
)

__all__ = ["visitor"]

PAGES = (
    "/runs", f"/runs/{RUN}", f"/runs/{HOSTILE}", f"/runs/{RUN}/report/csv", "/compare",
    f"/compare?baseline={RUN}", f"/compare?baseline={RUN}&other={OTHER}",
    f"/compare?baseline={RUN}&first=a&second=b", "/history", "/history?name=*", "/machine",
    "/import", "/login", "/new", f"/runs/{EMPTY}",
)  # fmt: skip


@pytest.fixture(scope="module")
def root(visitor: Visitor) -> Path:
    return visitor.settings.root


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_strict_and_harmless(visitor: Visitor, path: str) -> None:
    answer = visitor.get(path)
    assert answer.status == 200, answer.text
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert not is_unsafe(answer.text)
    assert "<script>1" not in answer.text
    assert "<img" not in answer.text


def test_a_broken_run_does_not_hide_the_others(visitor: Visitor) -> None:
    answer = visitor.get("/runs")
    for name in (RUN, OTHER, HOSTILE):
        assert f'<a href="/runs/{name}">' in answer.text
    assert f"{BROKEN}/run.json: not a run" in answer.text
    assert visitor.get(f"/runs/{BROKEN}").status == 422


@pytest.mark.parametrize(
    "path",
    [
        "/runs/nobody", "/runs/..", "/runs/..%2f..%2fetc", "/runs/%2fetc", "/runs/.",
        f"/runs/{RUN}/../../x", f"/runs/{RUN}/report/html", f"/runs/{RUN}/report/..%2frun.json",
        "/assets/../app.py", "/assets/..%2fapp.py", "/assets//etc/passwd", "/nothing",
    ],
)  # fmt: skip
def test_no_path_of_a_request_reaches_a_file(visitor: Visitor, path: str) -> None:
    assert visitor.get(path).status == 404


def test_answers_are_those_of_compare(visitor: Visitor) -> None:
    within = visitor.get(f"/compare?baseline={RUN}&first=a&second=b").text
    assert "b against a" in within
    assert "paired by block" in within
    assert ">worse<" in within
    across = visitor.get(f"/compare?baseline={RUN}&other={OTHER}").text
    assert "second against first" in across
    assert "no answer" in across


def test_cells_of_two_runs_are_compared(visitor: Visitor) -> None:
    text = visitor.get(f"/compare?baseline={RUN}&first=a&other={OTHER}&second=b").text
    assert "<h2>b of second against a of first (before the upgrade)</h2>" in text
    assert "one value for each run" in text
    assert "no answer" in text
    # A name on one side holds for both; a title names one cell of the run that is chosen twice.
    text = visitor.get(f"/compare?baseline={RUN}&first=b&other={OTHER}").text
    assert "<h2>b of second against b of first (before the upgrade)</h2>" in text
    titles = [quote(f"{name} · embedded · mixed · one") for name in "ab"]
    query = f"baseline={RUN}&first={titles[0]}&other={RUN}&second={titles[1]}"
    text = visitor.get(f"/compare?{query}").text
    assert "<h2>b against a</h2>" in text
    assert "paired by block" in text
    # They are offered to choose from.
    assert '<option value="a · embedded · mixed · one"></option>' in text


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("baseline=&other=", "baseline"),
        (f"baseline={RUN}&first=a&second=", "second"),
        (f"baseline={RUN}&other={OTHER}&margin=much", "margin"),
        (f"baseline={RUN}&other={OTHER}&margin=nan", "margin"),
        (f"baseline={RUN}&other={RUN}&first=a", "second"),
    ],
)
def test_a_bad_value_is_marked_at_its_field(visitor: Visitor, query: str, field: str) -> None:
    answer = visitor.get(f"/compare?{query}")
    assert answer.status == 400
    assert f'aria-describedby="wrong-{field}"' in answer.text
    assert answer.text.count("aria-invalid") == answer.text.count('id="wrong-')


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        (f"/compare?baseline={RUN}&other={RUN}", 400, "cannot be compared with itself"),
        (f"/compare?baseline={RUN}&first=a&second=zz", 400, "zz: not in first"),
        (f"/compare?baseline={RUN}&first=a&other={OTHER}&second=zz", 400, "zz: not in second"),
        (f"/compare?baseline={RUN}&first=a&second=a", 400, "cannot be compared with itself"),
        (f"/compare?baseline={RUN}&other=nobody", 404, "there is no run"),
        ("/history?name=nobody", 400, "no such client or cell in the store"),
    ],
)
def test_what_cannot_be_answered_is_said(
    visitor: Visitor, path: str, status: int, text: str
) -> None:
    answer = visitor.get(path)
    assert answer.status == status
    assert text in answer.text


def test_a_store_that_is_not_there(tmp_path: Path) -> None:
    with served(tmp_path / "none") as visitor:
        for path in ("/runs", "/history?name=a", "/compare"):
            answer = visitor.get(path)
            assert answer.status == 404
            assert "no such folder" in answer.text
            assert "cachemark run quick" in answer.text


def test_the_token_becomes_a_cookie(root: Path) -> None:
    with served(root, token="the token") as visitor:
        sent_away = visitor.get("/runs")
        assert (sent_away.status, sent_away.headers["location"]) == (303, "/login")
        assert visitor.post("/import", b"").status == 401
        assert visitor.post("/login", {"token": "another"}).status == 403
        assert visitor.post("/login", {"token": "the token", "csrf": "forged"}).status == 403
        answer = visitor.post("/login", {"token": "the token"})
        assert answer.status == 303
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert "the token" not in cookie
        visitor.cookie = cookie.partition(";")[0]
        assert visitor.get("/runs").status == 200


@pytest.fixture
def pem(tmp_path: Path) -> Path:
    """A certificate and its key, in one file."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl: apt-get install openssl")
    made = tmp_path / "server.pem"
    request = ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")
    files = ("-nodes", "-subj", "/CN=localhost", "-keyout", str(made), "-out", f"{made}.crt")
    subprocess.run([*request, *files], capture_output=True, check=True)
    made.write_bytes(made.read_bytes() + Path(f"{made}.crt").read_bytes())
    return made


def test_over_https_the_cookie_is_secure(root: Path, pem: Path) -> None:
    with served(root, token="the token", tls_cert=pem, tls_key=pem) as visitor:
        assert visitor.address.startswith("https://127.0.0.1:")
        answer = visitor.post("/login", {"token": "the token"})
        assert answer.status == 303
        assert "Secure" in answer.headers["set-cookie"]
        visitor.cookie = answer.headers["set-cookie"].partition(";")[0]
        assert visitor.get("/runs").status == 200
        plain = {"origin": visitor.address.replace("https", "http")}
        assert visitor.post("/machine/doctor", {}, **plain).status == 403


def test_a_certificate_that_cannot_be_used_is_said(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "bad.pem").write_text("no certificate", encoding="utf-8")
    said = inside("web", "--port", "0", "--tls-cert", "bad.pem", "--tls-key", "bad.pem")
    assert said.returncode == 2
    assert "--tls-cert bad.pem, --tls-key bad.pem: not usable" in said.stderr


def test_all_addresses_are_shown_as_one_that_can_be_opened(root: Path) -> None:
    with served(root, host="0.0.0.0", token="the token") as visitor:
        shown = urlsplit(visitor.address)
        assert shown.netloc == f"{socket.gethostname()}:{shown.port}"
        local = Visitor(f"http://127.0.0.1:{shown.port}", visitor.settings)
        assert local.get("/runs", host=shown.netloc).status == 303


def test_a_run_that_was_broken_off_is_shown(root: Path, tmp_path: Path) -> None:
    store = tmp_path / "results"
    shutil.copytree(root / RUN, store / RUN)
    with (store / RUN / "outcomes.jsonl").open("ab") as file:
        file.write(b'{"trial": {"cell"')
    with served(store) as visitor:
        assert f'<a href="/runs/{RUN}">' in visitor.get("/runs").text
        assert visitor.get(f"/runs/{RUN}").status == 200
        assert visitor.get(f"/runs/{RUN}/archive").status == 200


def test_a_store_that_another_process_writes_is_shown(root: Path, tmp_path: Path) -> None:
    store = tmp_path / "results"
    shutil.copytree(root, store)
    with RunIndex(RunFolder(store)):
        pass
    with closing(sqlite3.connect(store / INDEX, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        other.execute("DELETE FROM run")
        with pytest.MonkeyPatch.context() as patched, served(store) as visitor:
            patched.setattr("cachemark.report.history.index._PATIENCE_S", 0.1)
            answer = visitor.get("/runs")
    assert answer.status == 200
    assert f'<a href="/runs/{RUN}">' in answer.text


def test_forms_of_other_pages_are_refused(visitor: Visitor) -> None:
    assert visitor.post("/machine/doctor", {}, origin="http://evil.example").status == 403
    assert visitor.post("/machine/doctor", {"csrf": "forged"}).status == 403
    assert visitor.post("/import", b"", **{"x-cachemark-csrf": "forged"}).status == 403
    assert visitor.post("/machine/doctor", b"x" * 300_000).status == 413
    assert visitor.get("/runs", host="evil.example").status == 421


def test_read_only_shows_no_form_and_takes_none(root: Path) -> None:
    with served(root, read_only=True) as visitor:
        assert 'href="/import"' not in visitor.get("/runs").text
        assert visitor.post("/import", b"").status == 403
        assert "<form" not in visitor.get("/machine").text


@pytest.mark.slow("it starts the import of the command line three times")
def test_an_archive_is_checked_before_it_is_imported(root: Path, tmp_path: Path) -> None:
    content = export_run(open_run(RUN, root), tmp_path).read_bytes()
    store = tmp_path / "results"
    with served(store) as visitor:
        tampered = content.replace(b"report", b"repork")[:-40]
        for bad in (tampered, b"no archive"):
            answer = visitor.post("/import", bad)
            assert answer.status == 422
            assert "the archive" in answer.text
            assert run_names(store) == []
        assert visitor.post("/import", content).text == f'{{"problem":"","run":"{RUN}"}}'
        assert "imported" in visitor.get(f"/runs/{RUN}").text


def test_a_port_in_use_is_said() -> None:
    first = bound_socket(WebSettings(root=Path("results")))
    port = first.getsockname()[1]
    with first, pytest.raises(UsageError, match=f"127.0.0.1:{port}: cannot listen there"):
        bound_socket(WebSettings(root=Path("results"), port=port))


def test_without_the_extra_there_is_one_line(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    said = inside("web")
    assert said.returncode == 2
    assert said.stderr == (
        "cachemark: pages need packages that are an extra\n  pip install 'cachemark[web]'\n"
    )


def test_options_that_do_not_fit(inside: Inside) -> None:
    assert "one without the other" in inside("web", "--tls-cert", "x").stderr
    assert "no such file" in inside("web", "--tls-cert", "x", "--tls-key", "y").stderr
    assert "not a port" in inside("web", "--port", "65536").stderr
