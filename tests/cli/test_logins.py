"""`run` against servers that want a login: who is played, and where the password never is."""

import shutil
from pathlib import Path

import pytest

from cachemark.endpoints.servers import parse_spec, running
from tests.builders.small_experiments import TRIALS, read_outcomes, write
from tests.cli.in_process import Inside

SECRET = "correct-horse"
needs_sasl = pytest.mark.skipif(
    shutil.which("memcached") is None or shutil.which("saslpasswd2") is None,
    reason="apt-get install memcached sasl2-bin",
)


@pytest.fixture
def password(tmp_path: Path) -> Path:
    folder = tmp_path / "private"
    folder.mkdir()
    (folder / "password").write_text(f"{SECRET}\nmore\n")
    return folder / "password"


def where_told(folder: Path) -> list[Path]:
    return [
        path
        for path in (folder / "results").rglob("*")
        if path.is_file() and SECRET.encode() in path.read_bytes()
    ]


@pytest.mark.parametrize(
    ("server", "wire"),
    [
        ("embedded:memory=16m,auth=ann:{}", "text"),
        ("embedded:memory=16m,auth=ann:{}", "binary"),
        ("distant:100us:embedded:memory=16m,auth=ann:{}", "text"),
        pytest.param("memcached:memory=16,auth=ann:{}", "meta", marks=needs_sasl),
        pytest.param("memcached:memory=16,auth=ann:{},sasl=yes", "binary", marks=needs_sasl),
        pytest.param(
            "cluster:2:memcached:memory=16,auth=ann@here:{},sasl=yes", "binary", marks=needs_sasl
        ),
    ],
)
def test_a_run_logs_in_and_keeps_no_password(
    inside: Inside, tmp_path: Path, password: Path, server: str, wire: str
) -> None:
    words = ("--server", server.format(password), "--set", f"loads.wire={wire}", "--blocks", "1")
    ended = inside("run", write(tmp_path), *words, "--set", "noise=note")
    (outcome,) = read_outcomes(tmp_path)
    assert outcome.state == "measured", outcome.reason
    assert outcome.measure is not None
    assert not any(each.errors for each in outcome.measure.operations.values())
    assert outcome.wire == wire
    assert where_told(tmp_path) == []
    assert SECRET not in ended.stdout + ended.stderr


def test_a_client_without_logins_is_not_played(
    inside: Inside, tmp_path: Path, password: Path
) -> None:
    server = f"embedded:memory=16m,auth=ann:{password}"
    file = write(tmp_path, TRIALS.replace("set = 1, mget = 1", "set = 1"))
    inside("run", file, "--client", "reference", "--server", server, "--blocks", "1")
    (outcome,) = read_outcomes(tmp_path)
    assert outcome.state == "unsupported"
    assert "does not support a login in the text protocol (`login_text`)" in outcome.reason


@needs_sasl
def test_a_protocol_without_login_names_the_one_that_has(
    inside: Inside, tmp_path: Path, password: Path
) -> None:
    server = f"memcached:memory=16,auth=ann:{password},sasl=yes"
    inside("run", write(tmp_path), "--server", server, "--set", "loads.wire=text", "--blocks", "1")
    (outcome,) = read_outcomes(tmp_path)
    assert outcome.state == "unsupported"
    assert outcome.reason == "the server takes no login in the text protocol"
    assert "loads.wire=binary" in outcome.remedy


@needs_sasl
@pytest.mark.parametrize("sasl", ["", ",sasl=yes"])
def test_a_wrong_password_for_a_running_server_is_one_error(
    inside: Inside, tmp_path: Path, password: Path, sasl: str
) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("wrong-battery\n")
    with running(parse_spec(f"memcached:memory=16,auth=ann:{password}{sasl}")) as server:
        name = f"remote:{server.addresses[0]},auth=ann:{wrong}{sasl}"
        ended = inside("probe", name)
        assert ended.returncode == 1
        assert "it rejects the login of 'ann'" in " ".join(ended.stderr.split())
        assert "wrong-battery" not in ended.stdout + ended.stderr
